"""Tool definitions as recorded: parsed, and the names of what they offer. Five shapes are in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from spangate._dialects._values import OBJECT, parsed, text

_MAX_KEPT: Final = 1 << 16
_WRAPPERS: Final = ("function", "toolSpec", "json_schema")


def offered_in(recorded: Any) -> frozenset[str] | None:
    """Return the names of recorded tool definitions; None if they cannot be read."""
    if isinstance(recorded, str) and len(recorded) <= _MAX_KEPT:
        return _names_in_text(recorded)
    return _names_in(parsed(recorded))


@lru_cache(maxsize=64)
def _names_in_text(recorded: str) -> frozenset[str] | None:
    """The same definitions come with every model call of an agent: parse them once."""
    return _names_in(parsed(recorded))


def _names_in(definitions: Any) -> frozenset[str] | None:
    if not isinstance(definitions, (list, *OBJECT)):
        return None
    return frozenset(_names([definitions] if isinstance(definitions, OBJECT) else definitions))


def _names(definitions: Iterable[Any]) -> Iterator[str]:
    for definition in definitions:
        if not isinstance(definition, OBJECT):
            continue
        inner = definition
        for key in _WRAPPERS:
            if isinstance(definition.get(key), OBJECT):
                inner = definition[key]
        name = text(inner.get("name"))
        if name is not None:
            yield name
