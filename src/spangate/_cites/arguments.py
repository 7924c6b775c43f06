"""Arguments of a tool call as two instrumentations recorded them, and whether both can be the same."""

from __future__ import annotations

import json
from typing import Any, Final

_MAX_CHARACTERS: Final = 1 << 16
"""Longer JSON text is not parsed: what it holds is taken to be unknown."""
_MAX_DEPTH: Final = 16


def as_object(value: Any) -> dict[str, Any] | None:
    """Return arguments that are an object, or the JSON text of one."""
    if isinstance(value, str) and value[:1] == "{" and len(value) <= _MAX_CHARACTERS:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def differ(wanted: Any, found: Any, depth: int = 0) -> bool:
    """Say whether two values contradict each other. Values of two types do not: a tool may turn text into numbers."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(wanted, dict) and isinstance(found, dict):
        shared = wanted.keys() if wanted.keys() == found.keys() else ()
        return any(differ(wanted[key], found[key], depth + 1) for key in shared)
    if isinstance(wanted, list) and isinstance(found, list):
        pairs = zip(wanted, found, strict=False)
        return len(wanted) != len(found) or any(differ(one, other, depth + 1) for one, other in pairs)
    if isinstance(wanted, bool) or isinstance(found, bool):
        return isinstance(wanted, bool) and isinstance(found, bool) and wanted != found
    for kind in (str, (int, float)):
        if isinstance(wanted, kind) and isinstance(found, kind):
            return bool(wanted != found) and wanted == wanted  # noqa: PLR0124  a NaN contradicts nothing
    return False
