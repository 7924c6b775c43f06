"""Totals that frameworks repeat on the spans above their model calls, held against what lies below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from spangate._lineage import LookUp, nearest
from spangate._records import Finding, Role, Span
from spangate._run import Run
from spangate._usage.calls import Call, Calls
from spangate._usage.tokens import UNSAID, Reading, reading_of

_ROLES: Final[tuple[Role, ...]] = ("agent", "workflow", "iteration", "other")
_SIDES: Final = ("input", "output")


@dataclass(slots=True, eq=False)
class _Rollup:
    """A span with a total, and what it may equal.

    ``sums`` are, side by side, what the calls below used, what its instrumentation recorded for them, and both again
    for its own calls, which are those not below a nested agent that has a total itself; None where a call below does
    not say what it used. ``is_early`` says that a call below ended after the total was taken.
    """

    span: Span
    reading: Reading
    sums: list[list[int] | None] = field(default_factory=lambda: [[0] * 4, [0] * 4])
    is_early: bool = False

    def add(self, call: Call, *, is_own: bool) -> None:
        """Add a call below the span."""
        self.is_early = self.is_early or _ends_after(call, self.span)
        for side, sums in enumerate(self.sums):
            count = call.tokens[side]
            if count is None:
                self.sums[side] = None
            elif sums is not None:
                recorded = _recorded(call, self.span.scope, side, count)
                sums[0] += count
                sums[1] += recorded
                sums[2] += count * is_own
                sums[3] += recorded * is_own


def wrong_rollups(run: Run, calls: Calls) -> Iterator[Finding]:
    """Yield the totals that do not add up.

    A total is compared on a side only where every call below says what it used there, and said it before the total
    was taken. It is right if it equals the sum of all calls below, or of its own, either as they count here or as its
    own instrumentation recorded them.
    """
    totals = dict(_totals(run))
    if not totals:
        return
    look_up = nearest(run, totals.__contains__)
    rollups: dict[Span, _Rollup] = {}
    for call in calls:
        for span, is_own in _above(call, look_up).items():
            if span not in rollups:
                rollups[span] = _Rollup(span, totals[span])
            rollups[span].add(call, is_own=is_own)
    for rollup in run.walk(list(rollups.values())):
        if not rollup.is_early:
            yield from _compare(rollup)


def _totals(run: Run) -> Iterator[tuple[Span, Reading]]:
    """Yield the spans that are no calls and have a count of their own."""
    for role in _ROLES:
        for span in run.of_role(role):
            reading = reading_of(span)
            if reading is not UNSAID:
                yield span, reading


def _above(call: Call, look_up: LookUp) -> dict[Span, bool]:
    """Return the spans with a total above a call, and whether the call is their own."""
    found: dict[Span, bool] = {}
    for seen in call.sightings:
        is_own, above = True, look_up(seen.span)
        while above is not None and found.get(above) not in (True, is_own):  # from there on all has been said
            found[above] = is_own
            is_own = is_own and above.role != "agent"
            above = look_up(above)
    return found


def _ends_after(call: Call, span: Span) -> bool:
    if span.end_ns is None:
        return False
    for seen in call.sightings:
        end_ns = seen.span.end_ns
        if end_ns is None or end_ns > span.end_ns:
            return True
    return False


def _compare(rollup: _Rollup) -> Iterator[Finding]:
    for side, name in enumerate(_SIDES):
        totals = {rollup.reading.recorded[side], rollup.reading.counted[side]} - {None}
        sums = rollup.sums[side]
        if sums is None or not totals or not totals.isdisjoint(sums):
            continue
        told, counted = rollup.reading.recorded[side], max(sums)
        detail = f"says {told} {name} tokens where the calls below it used {counted}"
        yield Finding("budget.rollup_mismatch" if told else "budget.suspicious_zero", rollup.span, detail)


def _recorded(call: Call, scope: str, side: int, otherwise: int) -> int:
    """Return what the instrumentation ``scope`` recorded for the call, if it saw it."""
    seen = [
        count
        for sighting in call.sightings
        if sighting.span.scope == scope and (count := sighting.reading.recorded[side]) is not None
    ]
    return max(seen, default=otherwise)
