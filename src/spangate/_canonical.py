"""One canonical JSON form and the hashes over it. Nothing is normalised: another byte is another value."""

from __future__ import annotations

import hashlib
import json
from typing import Any

HASH_DIGITS = 16
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical_json(value: Any) -> str:
    """Write ``value`` with sorted keys, no blanks and characters kept as they are.

    Raises:
        ValueError: NaN or infinity, which JSON does not have, or a value that refers to itself.
        TypeError: a value that is not JSON (bytes, a set, an object), or keys that cannot be sorted.
    """
    return _encode(value)


def text_hash(text: str, digits: int = HASH_DIGITS) -> str:
    """Hash a text: the first ``digits`` hex digits of its sha256.

    A lone surrogate is hashed as the three bytes it would be, since a prompt may hold half an emoji.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def canonical_hash(value: Any, digits: int = HASH_DIGITS) -> str:
    """Hash the canonical JSON of ``value``. Raises as :func:`canonical_json` does."""
    return text_hash(canonical_json(value), digits)
