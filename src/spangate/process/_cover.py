"""Whether a program that is being started is traced already, by whoever called the one that starts it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

_is_covered: Final[ContextVar[bool]] = ContextVar("spangate_covered", default=False)

is_covered: Final = _is_covered.get
"""Says whether what is started now has a span."""


class Covered:
    """Says so of what is started inside. A class, not a generator: this stands between a caller and the program."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _is_covered.set(True)

    def __exit__(self, *_: object) -> None:
        _is_covered.reset(self._token)
