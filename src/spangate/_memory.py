"""What outlives decided runs: a bounded memory that late spans are looked up in.

Guarded by the buffer's lock. The oldest decision goes first when there are more than ``max_decisions``, apart for runs
and for what passed without one, so that plain requests do not push agents out. Member ids are kept only for runs of up
to ``MAX_IDS`` spans, the others are recognised by their time range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from spangate._tree import Decided

MAX_IDS = 256
MAX_DECISIONS = 4096
"""About 70 bytes an id: the memory stays below 75 MB for each kind in the worst case, near 6 MB for 20 spans a run."""


class Memory:
    """The decisions of this process, the newest last."""

    def __init__(self, max_decisions: int = MAX_DECISIONS) -> None:
        self._max = max_decisions
        self._runs: dict[Decided, Sequence[int]] = {}
        self._plain: dict[Decided, Sequence[int]] = {}
        self._by_trace: dict[int, list[Decided]] = {}
        self._open: dict[tuple[int, int], tuple[Decided, int]] = {}

    def remember(self, decided: Decided, open_ids: Sequence[int]) -> None:
        """Keep a decision, with the ids of the spans that were still open: their ends will come late."""
        kept = self._runs if decided.has_agent else self._plain
        kept[decided] = open_ids
        self._by_trace.setdefault(decided.trace_id, []).append(decided)
        for span_id, times in Counter(open_ids).items() if open_ids else ():
            self._open[decided.trace_id, span_id] = decided, times
        if len(kept) > self._max:
            oldest = next(iter(kept))
            self._forget(oldest, kept.pop(oldest))

    def _forget(self, decided: Decided, open_ids: Iterable[int]) -> None:
        rows = self._by_trace[decided.trace_id]
        rows.remove(decided)
        if not rows:
            del self._by_trace[decided.trace_id]
        for span_id in open_ids:
            if self.open_under(decided.trace_id, span_id) is decided:
                del self._open[decided.trace_id, span_id]

    def find(self, trace_id: int, span_id: int, start_ns: int | None) -> Decided | None:
        """Return the newest decision that the span was a member of."""
        for decided in reversed(self._by_trace.get(trace_id, ())):
            if decided.holds(span_id, start_ns):
                return decided
        return None

    def open_under(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision under which this span was still open, if it has not ended since."""
        found = self._open.get((trace_id, span_id))
        return None if found is None else found[0]

    def take_open(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision under which this span was still open, once for each such span."""
        found = self._open.pop((trace_id, span_id), None)
        if found is None:
            return None
        decided, times = found
        if times > 1:
            self._open[trace_id, span_id] = decided, times - 1
        return decided

    def open_ids(self) -> frozenset[tuple[int, int]]:
        """Return (trace id, span id) of all spans whose end has not come yet."""
        return frozenset(self._open)

    def overlapping(self, order: int) -> Iterator[Decided]:
        """Yield the decisions about runs, newest first, whose root was open at the moment ``order``."""
        for decided in reversed(self._runs):
            if decided.order < order < decided.end_order:
                yield decided
