"""Which earlier program the next one repeats: a retry has an invocation id of its own and names the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from spangate import _keys as keys

_earlier: Final[ContextVar[str | None]] = ContextVar("spangate_retry_of", default=None)


@contextmanager
def retry_of(invocation_id: str | None) -> Iterator[None]:
    """Have the programs that are started inside name the one that they repeat.

    Args:
        invocation_id: Of the earlier program, as :func:`spangate.process.invocation_id` returns it. None: of none.
    """
    token = _earlier.set(invocation_id)
    try:
        yield
    finally:
        _earlier.reset(token)


def retried() -> Mapping[str, str]:
    """Return what the span of a retry says of the earlier program."""
    earlier = _earlier.get()
    return {} if earlier is None else {keys.PARENT_INVOCATION_ID: earlier}
