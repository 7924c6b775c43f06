"""What programs have sent that is not in the trace of their run, or comes when that run is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spangate._buffer import Buffer
from spangate._buffer.gather import decision_about
from spangate._buffer.tree import Decided
from spangate._forest import Part, has_agent, local_trees
from spangate._records import Finding, Span, Trigger
from spangate._run import Run
from spangate._settle.decide import Decider
from spangate._settle.heard import connect, merged, records_of


class Beside:
    """Decides trees that no run claims, and lets late spans follow their run. Used by the worker alone.

    ``notes`` are what every run is told of the process.
    """

    def __init__(self, buffer: Buffer, decider: Decider, notes: Sequence[Finding]) -> None:
        self._buffer = buffer
        self._decider = decider
        self._notes = notes

    def settle(self, parts: Iterable[Part], trigger: Trigger, prefix: str) -> None:
        """Decide each tree in which there is an agent as a run of its own, and let the rest pass.

        Where a run claims none of them, nobody honoured the context: they are independent, and no parent is made up.
        """
        for number, part in enumerate(parts, 1):
            if has_agent(part.spans):
                self._decide(part, trigger, f"{prefix}-{number}", self._notes, None)
            else:
                self._decider.let_pass(part.spans)

    def settle_all(self, spans: Sequence[Span], trigger: Trigger, prefix: str) -> None:
        """Settle spans whose tree is gone, each of their own trees by itself."""
        self.settle([Part(root, root, members) for root, members in local_trees(spans)], trigger, prefix)

    def follow_late(self) -> None:
        """Have what programs sent late follow the decision on their run.

        What was refused stays so. What began while its run went on belongs to it, however late it is sent. Agents that
        began after a run was over are decided by themselves, and say so.
        """
        late: dict[Decided, list[Span]] = {}
        for decided, received in self._buffer.take_received_late():
            late.setdefault(decided, []).extend(records_of((received,), self._buffer.rest))
        for decided, sent in late.items():
            spans = merged((), sent)
            connect(spans, spans)
            for root, members in local_trees(spans):
                self._follow(decided, Part(root, root, members))

    def _follow(self, decided: Decided, part: Part) -> None:
        if decided.ruling == "fail":
            self._decider.withhold(part.spans)
        elif decided.ruling != "pass":
            self.settle([part], "late_span", f"{decided.run_id}-{part.root.hex_id}")
        elif has_agent(span for span in part.spans if span.start_ns > decided.root_end_ns):
            what = f"started after the end of its run {decided.run_id}, which had been decided (pass)"
            notes = [*self._notes, Finding("forest.late_child", part.root, what)]
            run_id = f"{decided.run_id}-late-{part.root.hex_id}"
            self._decide(part, "late_span", run_id, notes, decided.verdict_span_id)
        else:
            self._decider.let_pass(part.spans, decided.run_id)

    def _decide(
        self, part: Part, trigger: Trigger, run_id: str, notes: Sequence[Finding], supersedes: int | None
    ) -> None:
        decided = decision_about(part.spans, run_id, supersedes)
        self._buffer.remember(decided)
        run = Run(run_id, part.root, [*part.spans], trigger, notes, starts_known=False)
        self._decider.decide(run, part.bearer, decided)
