"""What outlives decided runs: a bounded memory that late spans are looked up in.

Guarded by the buffer's lock. The oldest decision goes first when there are more than ``max_decisions``; member ids are
kept only for runs of up to ``MAX_IDS`` spans, the others are recognised by their time range.
"""

from __future__ import annotations

from collections.abc import Iterator

from spangate._tree import Decided

MAX_IDS = 256
MAX_DECISIONS = 4096
"""About 70 bytes an id: the memory stays below 75 MB in the worst case, and near 6 MB for runs of 20 spans."""


class Memory:
    """The decisions of this process, the newest last."""

    def __init__(self, max_decisions: int = MAX_DECISIONS) -> None:
        self._max = max_decisions
        self._decided: dict[Decided, frozenset[int]] = {}
        self._by_trace: dict[int, list[Decided]] = {}
        self._open: dict[tuple[int, int], Decided] = {}

    def remember(self, decided: Decided, open_ids: frozenset[int]) -> None:
        """Keep a decision, with the ids of the spans that were still open: their ends will come late."""
        self._decided[decided] = open_ids
        self._by_trace.setdefault(decided.trace_id, []).append(decided)
        for span_id in open_ids:
            self._open[decided.trace_id, span_id] = decided
        if len(self._decided) > self._max:
            self._forget(next(iter(self._decided)))

    def _forget(self, decided: Decided) -> None:
        open_ids = self._decided.pop(decided)
        rows = self._by_trace[decided.trace_id]
        rows.remove(decided)
        if not rows:
            del self._by_trace[decided.trace_id]
        for span_id in open_ids:
            self._open.pop((decided.trace_id, span_id), None)

    def find(self, trace_id: int, span_id: int, start_ns: int | None) -> Decided | None:
        """Return the newest decision that the span was a member of."""
        for decided in reversed(self._by_trace.get(trace_id, ())):
            if decided.holds(span_id, start_ns):
                return decided
        return None

    def take_open(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision under which this span was still open, once."""
        return self._open.pop((trace_id, span_id), None)

    def open_ids(self) -> frozenset[tuple[int, int]]:
        """Return (trace id, span id) of all spans whose end has not come yet."""
        return frozenset(self._open)

    def overlapping(self, order: int) -> Iterator[Decided]:
        """Yield the decisions, newest first, whose root was open at the moment ``order``."""
        for decided in reversed(self._decided):
            if decided.order < order < decided.end_order:
                yield decided
