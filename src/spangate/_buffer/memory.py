"""What outlives decided runs: a bounded memory that late spans are looked up in.

Guarded by the buffer's lock. The oldest decision goes first when there are more than ``max_decisions``, apart for what
passed without a run, for runs of which spans are still open, and for other runs, so that plain requests push no agents
out and short runs none that goes on. Member ids are kept only for runs of up to ``MAX_IDS`` spans, the others are
recognised by their time range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from spangate._buffer.tree import Decided

MAX_IDS = 256
MAX_DECISIONS = 4096
"""Eight bytes an id: the memory stays below 10 MB for each kind in the worst case, near 2 MB for 20 spans a run."""
MAX_OPEN = 1 << 18
"""Spans of decided runs whose ends are waited for, about 200 bytes each."""


class Memory:
    """The decisions of this process, the newest last.

    ``_newest`` finds the last decision in a trace, which leads to those before it. ``_still`` counts for a decision, by
    id, the spans that were open under it and have not ended since. ``awaited`` finds the newest such decision by (trace
    id, span id), ``_shared`` are the ids for which there are more. ``_by_run`` finds the newest by the id of a run that
    the program has opened.
    """

    def __init__(self, max_decisions: int = MAX_DECISIONS) -> None:
        self._max = max_decisions
        self._runs: dict[Decided, None] = {}
        self._unfinished: dict[Decided, None] = {}
        self._plain: dict[Decided, None] = {}
        self._newest: dict[int, Decided] = {}
        self._still: dict[Decided, Counter[int]] = {}
        self.awaited: dict[tuple[int, int], Decided] = {}
        self._shared: set[tuple[int, int]] = set()
        self._by_run: dict[str, Decided] = {}

    def remember(self, decided: Decided, open_ids: Sequence[int]) -> None:
        """Keep a decision, with the ids of the spans that were still open: their ends will come late."""
        decided.earlier = self._newest.get(decided.trace_id)
        self._newest[decided.trace_id] = decided
        self._by_run.update(dict.fromkeys(decided.opened, decided))
        if open_ids:
            self._still[decided] = Counter(open_ids)
        for span_id in open_ids:
            self._wait_for(decided, span_id)
        kind = self._plain if not decided.has_agent else self._unfinished if open_ids else self._runs
        self._keep(decided, kind)

    def _wait_for(self, decided: Decided, span_id: int) -> None:
        key = decided.trace_id, span_id
        if self.awaited.setdefault(key, decided) is not decided:
            self._shared.add(key)
            self.awaited[key] = decided

    def _wait_no_more(self, decided: Decided, span_id: int) -> None:
        key = decided.trace_id, span_id
        if self.awaited.get(key) is decided:
            del self.awaited[key]
        if key in self._shared:
            self._shared.remove(key)
            for other in reversed([*self._in_trace(decided.trace_id)]):
                if other is not decided and span_id in self._still.get(other, ()):
                    self._wait_for(other, span_id)

    def _keep(self, decided: Decided, kind: dict[Decided, None]) -> None:
        kind[decided] = None
        if len(kind) > self._max or (len(kind) > 1 and len(self.awaited) > MAX_OPEN):
            oldest = next(iter(kind))
            del kind[oldest]
            self._forget(oldest)

    def _forget(self, decided: Decided) -> None:
        later = next((other for other in self._in_trace(decided.trace_id) if other.earlier is decided), None)
        if later is not None:
            later.earlier = decided.earlier
        elif decided.earlier is not None:
            self._newest[decided.trace_id] = decided.earlier
        else:
            del self._newest[decided.trace_id]
        for span_id in self._still.pop(decided, ()):
            self._wait_no_more(decided, span_id)
        for run_id in decided.opened:
            if self._by_run.get(run_id) is decided:
                del self._by_run[run_id]

    def _in_trace(self, trace_id: int) -> Iterator[Decided]:
        """Yield the decisions in a trace, the newest first."""
        decided = self._newest.get(trace_id)
        while decided is not None:
            yield decided
            decided = decided.earlier

    def knows(self, trace_id: int) -> bool:
        """Say whether a decision in this trace is remembered."""
        return trace_id in self._newest

    def find(self, trace_id: int, span_id: int, start_ns: int | None) -> Decided | None:
        """Return the newest decision that the span was a member of."""
        return next((decided for decided in self._in_trace(trace_id) if decided.holds(span_id, start_ns)), None)

    def of_program(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision that the span of a program was a member of."""
        return next((decided for decided in self._in_trace(trace_id) if decided.holds_program(span_id)), None)

    def of_log_record(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision about the span that a log record names.

        Where the ids of a run were not kept, since it was too large, a span that nobody knows is taken to be its.
        """
        found = self.awaited.get((trace_id, span_id)) or self.find(trace_id, span_id, None)
        return found or next((decided for decided in self._in_trace(trace_id) if decided.span_ids is None), None)

    def of_run(self, run_id: str) -> Decided | None:
        """Return the newest decision about a run of the program's own with this id."""
        return self._by_run.get(run_id)

    def newest(self, trace_id: int) -> Decided | None:
        """Return the newest decision in a trace."""
        return self._newest.get(trace_id)

    def open_under(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision under which this span was still open, if it has not ended since."""
        return self.awaited.get((trace_id, span_id))

    def follow(self, trace_id: int, parent_id: int, span_id: int) -> bool:
        """Keep a span that starts below one that is still open under a decided run. False if there is no such run."""
        decided = self.awaited.get((trace_id, parent_id))
        if decided is None or not decided.has_agent or len(self.awaited) >= MAX_OPEN:
            return False
        self._wait_for(decided, span_id)
        self._still[decided][span_id] += 1
        return True

    def take_open(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision under which this span was still open, once for each such span."""
        decided = self.awaited.get((trace_id, span_id))
        if decided is None:
            return None
        still = self._still[decided]
        still[span_id] -= 1
        if not still[span_id]:
            del still[span_id]
            self._wait_no_more(decided, span_id)
        if not still:
            del self._still[decided]
            self._finish(decided)
        return decided

    def _finish(self, decided: Decided) -> None:
        """Keep a decision about a run of which nothing is open any more with the others of that kind."""
        if decided in self._unfinished:
            del self._unfinished[decided]
            self._keep(decided, self._runs)

    def open_ids(self) -> frozenset[tuple[int, int]]:
        """Return (trace id, span id) of all spans whose end has not come yet."""
        return frozenset(self.awaited)

    def overlapping(self, order: int) -> Iterator[Decided]:
        """Yield the decisions about runs whose root was open at the moment ``order``."""
        for decided in chain(reversed(self._runs), self._unfinished):
            if decided.order < order < decided.end_order:
                yield decided
