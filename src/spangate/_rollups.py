"""Totals that frameworks repeat on the spans above their model calls, held against what lies below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spangate._calls import Call, Calls
from spangate._records import Finding, Role, Span
from spangate._run import Run
from spangate._tokens import UNSAID, Reading, reading_of

_ROLES: Final[tuple[Role, ...]] = ("agent", "workflow", "iteration", "other")
_SIDES: Final = ("input", "output")

_Sums: TypeAlias = tuple[int, int, int, int]
_NOTHING: Final[_Sums] = (0, 0, 0, 0)


@dataclass(slots=True, eq=False)
class _Rollup:
    """A span with a total, and what it may equal.

    ``sums`` are, side by side, what the calls below used, what its instrumentation recorded for them, and both again
    for its own calls, which are those not below a nested agent that has a total itself; None where a call below does
    not say what it used. ``is_early`` says that a call below ended after the total was taken.
    """

    span: Span
    reading: Reading
    sums: list[_Sums | None] = field(default_factory=lambda: [_NOTHING, _NOTHING])
    is_early: bool = False

    def add(self, call: Call, *, is_own: bool) -> None:
        """Add a call below the span."""
        end_ns = self.span.end_ns
        ends = [seen.span.end_ns for seen in call.sightings]
        self.is_early = self.is_early or (end_ns is not None and any(end is None or end > end_ns for end in ends))
        self.sums = [self._with(call, side, sums, is_own=is_own) for side, sums in enumerate(self.sums)]

    def _with(self, call: Call, side: int, sums: _Sums | None, *, is_own: bool) -> _Sums | None:
        count = call.tokens[side]
        if count is None or sums is None:
            return None
        recorded = _recorded(call, self.span.scope, side, count)
        below, as_recorded, own, own_as_recorded = sums
        if is_own:
            own, own_as_recorded = own + count, own_as_recorded + recorded
        return below + count, as_recorded + recorded, own, own_as_recorded


def wrong_rollups(run: Run, calls: Calls) -> Iterator[Finding]:
    """Yield the totals that do not add up.

    A total is compared on a side only where every call below says what it used there, and said it before the total
    was taken. It is right if it equals the sum of all calls below, or of its own, either as they count here or as its
    own instrumentation recorded them.
    """
    totals = {id(span): reading for span, reading in _totals(run)}
    if not totals:
        return
    rollups: dict[int, _Rollup] = {}
    for call in calls:
        for span, is_own in _above(run, call, totals).items():
            if id(span) not in rollups:
                rollups[id(span)] = _Rollup(span, totals[id(span)])
            rollups[id(span)].add(call, is_own=is_own)
    for rollup in rollups.values():
        if not rollup.is_early:
            yield from _compare(rollup)


def _totals(run: Run) -> Iterator[tuple[Span, Reading]]:
    """Yield the spans that are no calls and have a count of their own."""
    for role in _ROLES:
        for span in run.of_role(role):
            reading = reading_of(span)
            if reading is not UNSAID:
                yield span, reading


def _above(run: Run, call: Call, totals: Mapping[int, Reading]) -> dict[Span, bool]:
    """Return the spans with a total above a call, and whether the call is their own."""
    found: dict[Span, bool] = {}
    for seen in call.sightings:
        is_own = True
        for above in run.ancestors(seen.span):
            if id(above) in totals:
                found[above] = is_own or found.get(above, False)
                is_own = is_own and above.role != "agent"
    return found


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
