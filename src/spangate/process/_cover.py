"""Whether a program that is being started is traced already, by whoever called the one that starts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_is_covered: Final[ContextVar[bool]] = ContextVar("spangate_covered", default=False)

is_covered: Final = _is_covered.get
"""Says whether what is started now has a span."""


@contextmanager
def covered() -> Iterator[None]:
    """Say so of what is started inside."""
    token = _is_covered.set(True)
    try:
        yield
    finally:
        _is_covered.reset(token)
