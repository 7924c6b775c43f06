"""Stretches of time: their union, what it covers of another stretch, its gaps, and where stretches overlap.

A stretch is a pair of nanoseconds, begin and end; one that ends before it begins is nobody's business here. Everything
is O(n log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

Stretch: TypeAlias = tuple[int, int]
Thing = TypeVar("Thing")


def union(stretches: Iterable[Stretch], within: Stretch) -> list[Stretch]:
    """Return what ``stretches`` cover of ``within``, in order, none touching the next."""
    first, last = within
    merged: list[Stretch] = []
    for begin, end in sorted(stretches):
        begin, end = max(begin, first), min(end, last)  # noqa: PLW2901  clipped
        if begin >= end:
            continue
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = merged[-1][0], end
        else:
            merged.append((begin, end))
    return merged


def length(stretches: Iterable[Stretch]) -> int:
    """Return how long stretches are, added up. Nanoseconds."""
    return sum(end - begin for begin, end in stretches)


def gaps(covered: Iterable[Stretch], within: Stretch) -> Iterator[Stretch]:
    """Yield what a union leaves of ``within``, in order."""
    at, last = within
    for begin, end in covered:
        if begin > at:
            yield at, begin
        at = end
    if at < last:
        yield at, last


class Overlap(NamedTuple):
    """Two things that took the same ``length_ns`` nanoseconds, by their places in what was given."""

    first: int
    second: int
    length_ns: int


def overlaps(stretches: Sequence[Stretch], most: int) -> tuple[int, list[Overlap]]:
    """Return how many pairs of stretches overlap, and the first ``most`` of them in the order of their begins.

    Pairs may be as many as the square of what is given, so they are counted and not all listed.
    """
    order = sorted(range(len(stretches)), key=lambda place: stretches[place])
    running: list[tuple[int, int]] = []  # by their ends
    count = 0
    listed: list[Overlap] = []
    for place in order:
        begin, end = stretches[place]
        while running and running[0][0] <= begin:
            heapq.heappop(running)
        if end <= begin:
            continue
        count += len(running)
        room = most - len(listed)
        if running and room > 0:
            known = sorted(running[:room], key=lambda one: (stretches[one[1]], one[1]))
            listed += [Overlap(other, place, min(end, until) - begin) for until, other in known]
        heapq.heappush(running, (end, place))
    return count, listed
