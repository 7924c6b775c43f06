"""Which attributes of spans and events are payload: what the dialects say, and what exceptions repeat."""

from __future__ import annotations

from typing import Final, NamedTuple

from spangate._dialects import DIALECTS
from spangate._dialects._base import Dialect
from spangate._dialects._events import MESSAGE_EVENTS, MESSAGE_KEYS

EXCEPTION_TEXTS: Final = frozenset({"exception.message", "exception.stacktrace"})
"""They repeat arguments and answers often enough, and nobody can tell when."""
STATUS_DESCRIPTION: Final = "status_description"
"""The name that the description of a status goes by among the payloads of a span."""


class Names(NamedTuple):
    """The keys of payloads, and how the keys of flattened payloads start."""

    keys: frozenset[str]
    prefixes: tuple[str, ...]

    def group(self, key: str) -> str | None:
        """Return the name of the payload that ``key`` is, or is a part of; None if it is none."""
        if key in self.keys:
            return key
        if key.startswith(self.prefixes):
            return next(prefix for prefix in self.prefixes if key.startswith(prefix))[:-1]
        return None


def names_of(dialect: Dialect) -> Names:
    """Return what is payload on a span of ``dialect``.

    Names with a dot in them belong to one convention and mean the same wherever they stand, so those of all dialects
    count on every span; others (``content``) only where their own dialect wrote the span.
    """
    return _ON_SPANS[dialect.name]


def event_names(dialect: Dialect, event: str) -> Names:
    """Return what is payload on an event of that name on a span of ``dialect``."""
    return (_ON_MESSAGES if event in MESSAGE_EVENTS else _ON_EVENTS)[dialect.name]


_DOTTED: Final = frozenset(key for dialect in DIALECTS for key in dialect.payload_keys if "." in key)
_PREFIXES: Final = tuple(prefix for dialect in DIALECTS for prefix in dialect.payload_prefixes)


def _table(further: frozenset[str] = frozenset()) -> dict[str, Names]:
    return {
        dialect.name: Names(
            dialect.payload_keys | _DOTTED | further, tuple(dict.fromkeys((*dialect.payload_prefixes, *_PREFIXES)))
        )
        for dialect in DIALECTS
    }


_ON_SPANS: Final = _table()
_ON_EVENTS: Final = _table(EXCEPTION_TEXTS)
_ON_MESSAGES: Final = _table(EXCEPTION_TEXTS | MESSAGE_KEYS)
