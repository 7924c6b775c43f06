"""The nearest ancestor with some property, for many spans of one run in linear time over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from spangate._records import Span
from spangate._run import Run

LookUp: TypeAlias = Callable[[Span], Span | None]


def nearest(run: Run, wanted: Callable[[Span], bool]) -> LookUp:
    """Make the look-up of the nearest span above a span that is ``wanted``; None where there is none in the run.

    What one look-up walks past is remembered for the next, so that a deep tree costs each of its spans one step.
    """
    known: dict[int, Span | None] = {}

    def look_up(span: Span) -> Span | None:
        path: list[Span] = []
        at = span
        while id(at) not in known:
            above = run.parent_of(at)
            if above is None or wanted(above):
                known[id(at)] = above
                break
            known[id(at)] = None  # so that a cycle of parents ends here
            path.append(at)
            at = above
        found = known[id(at)]
        for below in path:
            known[id(below)] = found
        return found

    return look_up
