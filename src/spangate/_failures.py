"""What became of the failures in a run: recovered, left standing, cut short on purpose, or not to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final, Literal, TypeAlias

from spangate._dialects import dialect_of
from spangate._lineage import LookUp, nearest
from spangate._records import Outcome, Role, Span
from spangate._run import Run

Fate: TypeAlias = Literal["recovered", "tolerated", "unrecovered", "unknown", "control_flow", "cancelled"]
"""``tolerated``: the span's caller did not fail, and the failure is the caller's affair. ``unknown``: the run has no
generation span, so whether the agent went on cannot be seen."""

FAILED: Final[frozenset[Outcome]] = frozenset({"error", "timeout"})
_CALLERS_AFFAIR: Final = frozenset({"other", "setup", "transport", "entry"})
_WORK: Final = frozenset({"tool", "process"})


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A span that did not end well below a span that does not say so. ``by`` is the one that recovered it."""

    span: Span
    fate: Fate
    by: Span | None = None


def failures(run: Run) -> list[Failure]:
    """Return the failures of a run in the order in which their spans started, each told once: where it lies deepest.

    A run whose root failed says so itself; nothing below it is listed then. While the root is open its last word is
    not spoken, and only what was cut short on purpose is listed.
    """
    outcomes = _bad_outcomes(run)
    if not outcomes:
        return []
    fates = _Fates(run, outcomes)
    candidates = (
        fates.of(span, outcomes[id(span)], index) for index, span in enumerate(run.spans) if id(span) in outcomes
    )
    return _deepest(run, [failure for failure in candidates if failure is not None])


def _bad_outcomes(run: Run) -> dict[int, Outcome]:
    """Map the identity of each ended span that did not end well to its outcome."""
    bad: dict[int, Outcome] = {}
    for span in chain((run.root,), run.spans):
        if span.end_ns is not None:
            outcome = dialect_of(span).outcome(span)
            if outcome != "ok":
                bad[id(span)] = outcome
    return bad


def head_of(run: Run) -> LookUp:
    """Make the look-up of the topmost span that speaks for a span: itself or one above it, None where it is not here.

    It is the root; but model and tool calls directly below a request, with no agent above them, form a run whose
    "root" is only the first of them: there each speaks for itself and what is below it.
    """
    root = run.root
    heads = {id(root)}
    if root.parent_id is not None and not root.parent_remote and root.parent_sampled:
        heads.update(id(span) for span in run.children.get((root.trace_id, root.parent_id), ()))
    above = nearest(run, lambda span: id(span) in heads)
    return lambda span: span if id(span) in heads else above(span)


class _Fates:
    """Decides what became of one failure, with the look-ups that this takes."""

    def __init__(self, run: Run, outcomes: Mapping[int, Outcome]) -> None:
        self._run = run
        self._outcomes = outcomes
        self._heads = head_of(run)
        self._failed_above = nearest(run, lambda span: id(span) in outcomes)
        self._tool_above = nearest(run, lambda span: span.role == "tool")
        self._recovery = _Recovery(run, outcomes)

    def of(self, span: Span, outcome: Outcome, position: int) -> Failure | None:
        """Return the failure that ``span`` is; None if it needs no telling, since a span above it tells of it."""
        head = self._heads(span) or self._run.root
        spoken = self._outcomes.get(id(head), "ok")
        if head is not span and spoken in FAILED:
            return None
        if outcome not in FAILED:
            return Failure(span, "cancelled" if outcome == "cancelled" else "control_flow")
        if spoken == "cancelled" or head.end_ns is None:
            return None
        return self._of_error(span, position, speaks_for_itself=head is span)

    def _of_error(self, span: Span, position: int, *, speaks_for_itself: bool) -> Failure | None:
        tolerated = self._is_callers_affair(span)
        if tolerated and self._failed_above(span) is not None:
            return None
        recovered_by = self._recovery.of(span, position)
        if recovered_by is not None:
            return Failure(span, "recovered", recovered_by)
        if speaks_for_itself:
            return None
        blind = span.role in _WORK and not self._run.of_role("generation")
        return Failure(span, "tolerated" if tolerated else "unknown" if blind else "unrecovered")

    def _is_callers_affair(self, span: Span) -> bool:
        """Tell an HTTP attempt behind a retry, or a program that exits 1 in a tool which takes that for an answer."""
        if span.role != "process":
            return span.role in _CALLERS_AFFAIR
        caller = self._tool_above(span)
        return caller is not None and caller.end_ns is not None and id(caller) not in self._outcomes


class _Recovery:
    """The healthy generations and iterations of a run, and which of them came after a failure and is another call."""

    def __init__(self, run: Run, outcomes: Mapping[int, Outcome]) -> None:
        self._run = run
        self._healthy = [_Series(run, role, outcomes) for role in ("generation", "iteration")]
        self._lineages: dict[int, frozenset[int]] = {}

    def of(self, failed: Span, position: int) -> Span | None:
        """Return the last healthy span that recovers ``failed``, which stands at ``position`` among the run's spans."""
        for series in self._healthy:
            for span in series.after(failed.end_ns or 0, position):
                if not self._is_same_call(failed, span):
                    return span
        return None

    def _is_same_call(self, failed: Span, later: Span) -> bool:
        if id(later) not in self._lineages:
            self._lineages[id(later)] = frozenset(id(above) for above in self._run.ancestors(later))
        if id(failed) in self._lineages[id(later)]:
            return True
        if failed.role != "generation" or later.role != "generation":
            return False
        response_id = dialect_of(failed).response_id(failed)
        return response_id is not None and response_id == dialect_of(later).response_id(later)


class _Series:
    """The healthy spans of one role with their places in the run."""

    def __init__(self, run: Run, role: Role, outcomes: Mapping[int, Outcome]) -> None:
        self._placed = [
            (place, span)
            for place, span in enumerate(run.spans)
            if span.role == role and span.end_ns is not None and id(span) not in outcomes
        ]
        # spans stand in the order in which they were started, but some are started late and backdated
        self._latest_start = list(accumulate((span.start_ns for _, span in self._placed), max))

    def after(self, time_ns: int, place: int) -> Iterator[Span]:
        """Yield those that stand after ``place`` and did not start before ``time_ns``, the last one first."""
        for (at, span), latest_ns in zip(reversed(self._placed), reversed(self._latest_start), strict=True):
            if at < place or latest_ns < time_ns:
                return
            if span.start_ns >= time_ns:
                yield span


def _deepest(run: Run, found: Sequence[Failure]) -> list[Failure]:
    """Leave out the spans that only pass on what a span below them has: the same fate, told again on the way up."""
    passed_on: dict[Fate, set[int]] = {}
    for failure in found:
        told = passed_on.setdefault(failure.fate, set())
        for above in run.ancestors(failure.span):
            if id(above) in told:
                break
            told.add(id(above))
    return [failure for failure in found if id(failure.span) not in passed_on[failure.fate]]
