"""By which rules two runs are diffed, and which changes between them are allowed until when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from spangate._redaction import SECRET_KEYS, VOLATILE_KEYS

Kind: TypeAlias = Literal[
    "added", "dropped", "reordered", "drift", "edge_added", "edge_dropped", "log_added", "log_dropped"
]
"""The classes of change: of calls, of what stands below what in the tree, and of what was logged."""
KINDS: Final[tuple[Kind, ...]] = (
    *("added", "dropped", "reordered", "drift"),
    *("edge_added", "edge_dropped", "log_added", "log_dropped"),
)

Changed: TypeAlias = Literal["prompt", "tools", "model", "params"]
"""The one thing that was meant to change between two runs."""

MODEL: Final = "model"
"""Stands for the name of the model that a call asked for, which many instrumentations put into the span's name."""
_EDGE: Final = r"(?<![0-9A-Za-z])"
NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "uuid": rf"{_EDGE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?![0-9A-Za-z])",
        "hex": rf"{_EDGE}(?=[a-fA-F]*[0-9])[0-9a-fA-F]{{8,}}(?![0-9A-Za-z])",
        "id": rf"{_EDGE}(?=[A-Za-z]*[0-9]+[A-Za-z]+[0-9])[0-9A-Za-z]{{16,}}(?![0-9A-Za-z])",
        "number": rf"{_EDGE}[0-9]+(?![0-9A-Za-z])",
    }
)
"""Patterns that have names: uuids, hex as in hashes and span ids, letters and digits mixed as in ``call_4fJq0Zk…``, and
numbers that are words of their own: the 2 of ``step 2`` and of ``step-2``, not that of ``search_v2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By which rules two runs are diffed.

    Attributes:
        coarse: Tools that are compared by name only, ``*`` standing for any text: for those whose answers nobody froze.
        redact: Keys whose values are secrets: calls that differ only there are the same call.
        volatile: Keys whose values always differ; arguments are compared without them.
        normalise: What is left out of names: a name of ``NAMED``, ``"model"``, or a regular expression.
        logs: Whether log records are compared, too.

    Raises:
        ValueError: an entry of ``normalise`` that is no regular expression.
    """

    coarse: tuple[str, ...] = ()
    redact: tuple[str, ...] = SECRET_KEYS
    volatile: tuple[str, ...] = VOLATILE_KEYS
    normalise: tuple[str, ...] = (MODEL, *NAMED)
    logs: bool = False

    def __post_init__(self) -> None:
        for pattern in self.normalise:
            _check(pattern)

    def is_coarse(self, tool: str) -> bool:
        """Say whether a tool is compared by name only."""
        return bool(self.coarse) and any(fnmatchcase(tool, pattern) for pattern in self.coarse)


def _check(pattern: str) -> None:
    try:
        re.compile(NAMED.get(pattern, pattern))
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One entry of an allow file: changes that somebody has decided to accept.

    Attributes:
        kind: The class of change.
        name: The tool, the edge (``parent > child``) or the log record, as the diff names it; ``*`` and ``?`` stand for
            any text.
        key: Of a drift, the one argument that may differ; None: any.
        reason: Why, for whoever reads the diff.
        expires: The last day on which it allows anything; None: it does for good.
        source: Where it is written, as ``allow.toml:7``.
    """

    kind: Kind
    name: str
    key: str | None = None
    reason: str = ""
    expires: date | None = None
    source: str = ""

    def names(self, kind: Kind, name: str) -> bool:
        """Say whether it is about changes of this kind in what has this name."""
        return kind == self.kind and (name == self.name or fnmatchcase(name, self.name))

    def has_expired(self, today: date) -> bool:
        """Say whether it allows nothing any longer."""
        return self.expires is not None and today > self.expires
