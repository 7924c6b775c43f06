"""Whether anything that may have changed the world ran between two calls, in two look-ups for each pair of them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from spangate._attempts import declares_change, names_file
from spangate._dialects import dialect_of
from spangate._failures import FAILED
from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run

_WORK = frozenset({"tool", "process"})


class Interludes:
    """The spans of a run that may have changed something outside of it, and when.

    Those are the spans that declare a change, or name a file, and all other tools and programs that did not fail and do
    not declare that they change nothing. One that is still open may do so at any time.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._changing = frozenset(_changing(run))
        self._starts = sorted(span.start_ns for span in self._changing)
        self._ends = sorted(_end_of(span) for span in self._changing)
        self._above = nearest(run, self._changing.__contains__)

    def none_between(self, earlier: Span, later: Span) -> bool:
        """Say whether nothing of that kind ran from the start of ``earlier`` to the start of ``later``.

        What ``earlier`` did inside of itself is not between them, nor is what both are inside of.
        """
        around = self._above(earlier)
        if around is not None and _end_of(around) <= later.start_ns:
            return False
        running = bisect_left(self._starts, later.start_ns) - bisect_right(self._ends, earlier.start_ns)
        own = self._inside.get(earlier, 0) + (earlier in self._changing)
        return running <= own + self._depth(around)

    @cached_property
    def _depths(self) -> dict[Span, int]:
        return {}

    def _depth(self, span: Span | None) -> int:
        """Count ``span`` and those of that kind above it, all of which are still running while ``span`` does."""
        chain: list[Span] = []
        while span is not None and span not in self._depths and span not in chain[-1:]:
            chain.append(span)
            self._depths[span] = 0  # so that a cycle of parents ends here
            span = self._above(span)
        depth = 0 if span is None else self._depths[span]
        for below in reversed(chain):
            depth += 1
            self._depths[below] = depth
        return depth

    @cached_property
    def _inside(self) -> dict[Span, int]:
        """How many of that kind are inside of each tool that failed."""
        failed = [span for span in self._run.of_role("tool") if _has_failed(span)]
        tool_above = nearest(self._run, frozenset(failed).__contains__)
        inside: dict[Span, int] = {}
        for span in self._changing:
            above = tool_above(span)
            if above is not None:
                inside[above] = inside.get(above, 0) + 1
        for span in reversed(failed):  # those further in started later
            above = tool_above(span)
            if above is not None:
                inside[above] = inside.get(above, 0) + inside.get(span, 0)
        return inside


def _changing(run: Run) -> Iterator[Span]:
    for span in run.spans:
        declared = declares_change(span)
        if declared is None and names_file(span.attributes):
            declared = True
        if declared is None:
            declared = span.role in _WORK and not _has_failed(span)
        if declared:
            yield span


def _has_failed(span: Span) -> bool:
    return span.end_ns is not None and dialect_of(span).outcome(span) in FAILED


def _end_of(span: Span) -> float:
    return math.inf if span.end_ns is None else span.end_ns
