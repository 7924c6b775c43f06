"""From a closed run to its verdict, and what follows from the verdict: release or refusal, memory, metrics, words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from spangate._buffer import Buffer
from spangate._buffer.tree import Decided, Ruling
from spangate._judge import Panel
from spangate._paced import paced, take_apart
from spangate._pinned import pinned_model
from spangate._records import Changes, Gate, Span, Verdict
from spangate._release.chunks import Parcel
from spangate._release.fan_out import FanOut
from spangate._release.packing import Manner, Pack, whole
from spangate._release.parcels import member_parcel, passing_parcel, place_of, run_parcel, verdict_parcel
from spangate._run import Run
from spangate._settle.log_records import hand_over, lose
from spangate._settle.look import Look, read
from spangate._telemetry import Telemetry, logger
from spangate._verdict.account import verdict_span_id
from spangate._verdict.text import one_line

if TYPE_CHECKING:
    from spangate._ledger.feeder import Feeder


class Decider:
    """Judges runs and lines up what leaves. Used by the worker alone.

    ``feeder`` has the calls of tools written down, None where there is no ledger. ``model`` is the one that the gates
    pin where a request names none.
    """

    def __init__(  # noqa: PLR0913  one thing for each step from a run to what leaves
        self,
        buffer: Buffer,
        sender: FanOut,
        telemetry: Telemetry,
        gates: Sequence[Gate],
        on_verdict: Callable[[Verdict], None] | None,
        *,
        dry_run: bool,
        pack: Pack = whole,
    ) -> None:
        self._buffer = buffer
        self._sender = sender
        self._telemetry = telemetry
        self._panel = Panel(gates)
        self._on_verdict = on_verdict
        self._dry_run = dry_run
        self._witness: Callable[[Run], Changes] | None = None
        self.feeder: Feeder | None = None
        self.model: Final = pinned_model(gates)
        self._manner = Manner(pack, self.model)

    def look_with(self, witness: Callable[[Run], Changes]) -> None:
        """Have each run judged with what ``witness`` says of its working tree."""
        self._witness = witness

    def decide(self, run: Run, bearer: Span, decided: Decided) -> None:
        """Judge ``run`` and line up the result. Its spans leave, or are freed: the list that they are in is taken over.

        ``bearer`` is the span that bears the verdict attributes of a released run; the ruling is written into
        ``decided``. A run that follows a decided one too late names that one's verdict span. One that cannot be judged
        for a defect is withheld, and counts as lost: it stands in no tree any more.
        """
        try:
            verdict = self._line_up(run, bearer, decided)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  a gate may do anything, and leave its thread; others get their verdicts
            logger.exception("run %s could not be judged and is withheld", run.run_id)
            self._lose(run.spans)
            self.rule(decided, "fail")
        else:
            self._tell(verdict)

    def _line_up(self, run: Run, bearer: Span, decided: Decided) -> Verdict:
        self._buffer.rest()
        start = time.perf_counter()
        spans = paced(run.spans, self._buffer.rest)
        if spans is not run.spans:
            run = replace(run, spans=spans)
        if self._witness is not None:
            run = replace(run, changes=self._witness(run))
        verdict = self._panel.judge(run)
        if decided.supersedes is not None:
            verdict = replace(verdict, supersedes=format(decided.supersedes, "016x"))
        refused = verdict.verdict == "fail" and not self._dry_run
        if not refused and verdict.spans_withheld:
            verdict = replace(verdict, spans_withheld=0)
        parcels = [*self._parcels(run, bearer, verdict, refused=refused)]
        calls = None if self.feeder is None else self.feeder.read(run)
        run.take_apart(self._buffer.rest)  # before anything leaves: it is new to the garbage collector, and large
        for parcel in parcels:
            self._sender.put(parcel)
        self._telemetry.withhold(verdict.spans_withheld)
        self._telemetry.judged(verdict, time.perf_counter() - start)
        number = verdict_span_id(run.run_id, 0) if refused else bearer.span_id
        self.rule(decided, "fail" if refused else "pass", number)
        if refused:
            take_apart(run.spans, self._buffer.rest)  # at last: until here they would count as lost
        if self.feeder is not None:
            self.feeder.write(calls)
        return verdict

    def _parcels(self, run: Run, bearer: Span, verdict: Verdict, *, refused: bool) -> Iterator[Parcel]:
        place, root_sampled = place_of(run), run.root.sampled
        if not refused:
            yield run_parcel(run, bearer, verdict, self._telemetry, self._manner)
        is_told = not refused and verdict.verdict == "pass" and bearer.end_ns is not None
        if root_sampled and not is_told:
            yield verdict_parcel(verdict, place, 0, self._telemetry)

    def rule(self, decided: Decided, ruling: Ruling, bearer_id: int | None = None) -> None:
        """Write down what was decided; spans that ended meanwhile follow."""
        waiting = self._buffer.rule(decided, ruling, bearer_id)
        if waiting:
            self.follow_late(decided, waiting)
        for one in (decided, *decided.joined):
            if one.records:
                records, one.records = one.records, ()
                self._buffer.let_go_records(sum(kept.weight for kept in records))
                hand_over(records, ruling, self._buffer.rest)

    def follow_late(self, decided: Decided, late: Sequence[Any]) -> None:
        """Let spans of the SDK that ended after the decision share the fate of the run that they belonged to."""
        if decided.ruling == "fail":
            self._telemetry.withhold(len(late))
        else:
            self.follow(decided, read(late))

    def follow(self, decided: Decided, look: Look) -> None:
        """Let late spans share the fate of the run that they belonged to."""
        if decided.ruling == "fail":
            self.withhold(look.spans)
        elif decided.is_member:
            self.hand_on(look.spans)
        else:
            self.let_pass(look.spans, decided.run_id if decided.ruling == "pass" else None)

    def withhold(self, spans: Sequence[Span]) -> None:
        """Keep late spans of a refused run back."""
        self._telemetry.withhold(sum(1 for span in spans if span.end_ns is not None))

    def lose(self, spans: int, reason: str) -> None:
        """Count spans that can neither be judged nor pass, and the log records of dropped trees."""
        if spans:
            self._telemetry.lose(spans, reason)
        lose(self._buffer.take_dropped(), reason)

    def let_pass(self, spans: Sequence[Span], run_id: str | None = None) -> None:
        """Line up spans that have no verdict of their own; ``run_id`` is the released run that they follow."""
        self._put(spans, lambda: passing_parcel(spans, self._telemetry, run_id, self._manner), self._sender.put)

    def hand_on(self, spans: Sequence[Span]) -> None:
        """Line up spans that another process will judge."""
        self._put(spans, lambda: member_parcel(spans, self._telemetry), self._sender.hand_on)

    def _put(self, spans: Sequence[Span], make: Callable[[], Parcel | None], put: Callable[[Parcel], None]) -> None:
        try:
            parcel = make()
        except Exception:  # noqa: BLE001  nobody knows what; it must not cost other spans their export
            logger.exception("%d spans could not be passed on", len(spans))
            self._lose(spans)
            return
        if parcel is not None:
            put(parcel)

    def _lose(self, spans: Sequence[Span]) -> None:
        self.lose(sum(1 for span in spans if span.end_ns is not None), "defect")

    def _tell(self, verdict: Verdict) -> None:
        if verdict.verdict == "fail":
            logger.warning("%s", one_line(verdict))
        if self._on_verdict is None:
            return
        try:
            self._on_verdict(verdict)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  the callback is the user's; its fault must not cost others their verdict
            logger.exception("on_verdict raised for run %s", verdict.run_id)
