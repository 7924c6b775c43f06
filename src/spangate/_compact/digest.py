"""What a payload is known by: a hash of what it says, a hash of its shape, and the bytes that it was recorded as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from spangate._canonical import canonical_hash, canonical_json, text_hash
from spangate._redaction import MAX_DEPTH, without

MAX_READ: Final = 4 << 20
"""Characters of the longest text that is read; a longer one has no hash, since reading it would hold up others."""
SHA256_DIGITS: Final = 64


class Digest(NamedTuple):
    """Hashes of a payload: ``sha256`` of what it says (64 hex digits), ``schema`` of its shape (16)."""

    sha256: str
    schema: str


def digest(value: Any) -> Digest | None:
    """Hash a payload as it was recorded; None if it is nothing that JSON can say, or too long or deep to be read.

    A text that is JSON counts as what it says, any other text as a JSON string. The hash is the sha256 of the canonical
    JSON (:mod:`spangate._canonical`) without volatile keys (:data:`spangate._redaction.VOLATILE_KEYS`).
    """
    try:
        said = _read(value)
    except (_TooLong, RecursionError):
        return None
    found = _digest(said)
    return _digest(value) if found is None and isinstance(value, str) else found


def schema_of(value: Any) -> Any:
    """Return the shape of a JSON value: its keys with the types of what stands under them, at any depth.

    Types are JSON's: a whole number is a number. The shape of a list is the set of the shapes of its items, so how many
    there are is data; an empty list has none. What lies deeper than 64 levels counts by its type alone.
    """
    return _schema(value, MAX_DEPTH)


def raw_bytes(value: Any) -> bytes | None:
    """Return the bytes of a payload: of a text its UTF-8, bytes as they are, of anything else its canonical JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    try:
        return canonical_json(without(value, ())).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError):
        return None


class _TooLong(Exception):  # noqa: N818  it never leaves this module
    """A text is longer than what is read."""


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return _said(value)
    if isinstance(value, (list, tuple)):
        return [_said(item) if isinstance(item, str) and item.startswith(("{", "[")) else item for item in value]
    return value


def _said(text: str) -> Any:
    if len(text) > MAX_READ:
        raise _TooLong
    try:
        return _decode(text)
    except ValueError:
        return text


def _no_json(constant: str) -> Any:
    raise ValueError(constant)


_decode: Final = json.JSONDecoder(parse_constant=_no_json).decode


def _digest(said: Any) -> Digest | None:
    kept = without(said)
    try:
        return Digest(text_hash(canonical_json(kept), SHA256_DIGITS), canonical_hash(schema_of(kept)))
    except (TypeError, ValueError, RecursionError):
        return None


def _schema(value: Any, depth: int) -> Any:
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        return scalar
    if isinstance(value, (dict, Mapping)):  # a dict first: asking for any mapping takes long
        return {key: _schema(inner, depth - 1) for key, inner in value.items()} if depth else "object"
    if isinstance(value, (list, tuple)):
        return _items(value, depth) if depth else "array"
    return next((name for kind, name in _SCALARS.items() if isinstance(value, kind)), "null")


_SCALARS: Final = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _items(items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    found = [_schema(item, depth - 1) for item in items]
    if len(found) < 2:  # noqa: PLR2004  there is nothing to sort
        return found
    shapes = {f'"{shape}"' if isinstance(shape, str) else canonical_json(shape): shape for shape in found}
    return [shapes[text] for text in sorted(shapes)]
