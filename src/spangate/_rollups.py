"""Totals that frameworks repeat on the spans above their model calls, held against what lies below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from spangate._calls import Call
from spangate._dialects import dialect_of
from spangate._records import Finding, Span
from spangate._run import Run
from spangate._tokens import UNSAID, Reading, read

_ROLES: Final = frozenset({"agent", "workflow", "iteration", "other"})
_SIDES: Final = ("input", "output")


@dataclass(slots=True, eq=False)
class _Rollup:
    """A span with a total, and the calls below it; ``own`` are those not below a nested agent that has one itself."""

    span: Span
    reading: Reading
    below: dict[int, Call] = field(default_factory=dict)
    own: dict[int, Call] = field(default_factory=dict)


def wrong_rollups(run: Run, calls: Sequence[Call]) -> Iterator[Finding]:
    """Yield the totals that do not add up.

    A total is compared on a side only where every call below says what it used there, and said it before the total
    was taken. It is right if it equals the sum of all calls below, or of its own, either as they count here or as its
    own instrumentation recorded them.
    """
    rollups = _rollups(run, calls)
    if rollups:
        _sort_calls(run, calls, rollups)
        for rollup in rollups.values():
            if not any(_ends_after(call, rollup.span) for call in rollup.below.values()):
                yield from _compare(rollup)


def _rollups(run: Run, calls: Sequence[Call]) -> dict[int, _Rollup]:
    """Find the spans above a call that have a count of their own. Every span is looked at once."""
    found: dict[int, _Rollup] = {}
    seen: set[int] = set()
    for call in calls:
        for sighting in call.sightings:
            above = run.parent_of(sighting.span)
            while above is not None and id(above) not in seen:
                seen.add(id(above))
                if above.role in _ROLES:
                    reading = read(dialect_of(above).usage(above))
                    if reading is not UNSAID:
                        found[id(above)] = _Rollup(above, reading)
                above = run.parent_of(above)
    return found


def _sort_calls(run: Run, calls: Sequence[Call], rollups: dict[int, _Rollup]) -> None:
    for call in calls:
        for sighting in call.sightings:
            is_own = True
            for above in run.ancestors(sighting.span):
                rollup = rollups.get(id(above))
                if rollup is not None:
                    rollup.below[id(call)] = call
                    if is_own:
                        rollup.own[id(call)] = call
                    is_own = is_own and above.role != "agent"


def _ends_after(call: Call, span: Span) -> bool:
    return span.end_ns is not None and any(
        sighting.span.end_ns is None or sighting.span.end_ns > span.end_ns for sighting in call.sightings
    )


def _compare(rollup: _Rollup) -> Iterator[Finding]:
    for side, name in enumerate(_SIDES):
        totals = {rollup.reading.recorded[side], rollup.reading.counted[side]} - {None}
        if not totals:
            continue
        sums = _sums(rollup, side)
        if sums is None or not totals.isdisjoint(sums):
            continue
        told, counted = rollup.reading.recorded[side], max(sums)
        detail = f"says {told} {name} tokens where the calls below it used {counted}"
        yield Finding("budget.rollup_mismatch" if told else "budget.suspicious_zero", rollup.span, detail)


def _sums(rollup: _Rollup, side: int) -> set[int] | None:
    """Return the sums that the total may equal; None where a call below does not say what it used."""
    sums: set[int] = set()
    for calls in (rollup.below, rollup.own):
        counted = recorded = 0
        for call in calls.values():
            count = call.tokens[side]
            if count is None:
                return None
            counted += count
            recorded += _recorded(call, rollup.span.scope, side, count)
        sums |= {counted, recorded}
    return sums


def _recorded(call: Call, scope: str, side: int, otherwise: int) -> int:
    """Return what the instrumentation ``scope`` recorded for the call, if it saw it."""
    seen = [
        count
        for sighting in call.sightings
        if sighting.span.scope == scope and (count := sighting.reading.recorded[side]) is not None
    ]
    return max(seen, default=otherwise)
