"""Decisions whose outcome comes in pieces: each piece is handed on as it comes, or as it came."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from spangate.tape._outcomes import Outcome
from spangate.tape._pending import Pending


def replayed(outcome: Outcome) -> Iterator[Any]:
    """Yield the pieces as they were recorded, and raise what ended them."""
    yield from outcome.chunks or ()
    if outcome.error is not None:
        raise outcome.error


async def areplayed(outcome: Outcome) -> AsyncIterator[Any]:
    """Yield the pieces as they were recorded, and raise what ended them."""
    for chunk in outcome.chunks or ():
        yield chunk
    if outcome.error is not None:
        raise outcome.error


def recorded(pending: Pending, do: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Yield what ``do`` yields, and keep it once it is over or nobody reads on."""
    chunks: list[Any] = []
    is_whole, error = False, None
    try:
        for chunk in do():
            chunks.append(chunk)
            yield chunk
        is_whole = True
    except Exception as failure:
        error = failure
        raise
    finally:
        pending.observed(Outcome(chunks=chunks, is_partial=not is_whole and error is None, error=error))


async def arecorded(pending: Pending, do: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
    """Yield what ``do`` yields, and keep it once it is over or nobody reads on."""
    chunks: list[Any] = []
    is_whole, error = False, None
    try:
        async for chunk in do():
            chunks.append(chunk)
            yield chunk
        is_whole = True
    except Exception as failure:
        error = failure
        raise
    finally:
        pending.observed(Outcome(chunks=chunks, is_partial=not is_whole and error is None, error=error))
