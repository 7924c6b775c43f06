"""Where the time of a run went, in words for people and as JSON for scripts. JSON has milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from spangate._timing import Hole, Times
from spangate._units import counted, duration, shown
from spangate._verdict.text import Style

MAX_HOLES: Final = 10
"""So many holes are told of one by one, the longest."""
_INDENT: Final = "      "


def longest(holes: Sequence[Hole], most: int = MAX_HOLES) -> list[Hole]:
    """Return the longest holes, in the order of time."""
    chosen = sorted(holes, key=lambda hole: -hole.length_ns)[:most]
    return sorted(chosen, key=lambda hole: hole.start_ns)


def between(hole: Hole) -> str:
    """Say between what a hole lies."""
    before = "the start" if hole.before is None else shown(hole.before.name)
    after = "the end" if hole.after is None else shown(hole.after.name)
    return f"between {before} and {after}"


def timing_text(account: Times, style: Style) -> str:
    """Return the account of a run's time in a few lines."""
    return "\n".join(_INDENT + line for line in _lines(account, style))


def _lines(account: Times, style: Style) -> Iterator[str]:
    if account.blind:
        yield style(f"time: {account.blind}", "gap")
        return
    yield (
        f"time  {duration(account.wall_ns)} wall, {duration(account.covered_ns)} covered by calls, "
        + style(f"{duration(account.untraced_ns)} untraced ({account.untraced_fraction:.1%})", "warn")
    )
    own = sorted(account.by_role.items(), key=lambda item: -item[1])
    yield style("own   " + ", ".join(f"{role} {duration(taken)}" for role, taken in own if taken), "dim")
    for hole in longest(account.holes, 1):
        yield style(f"hole  {duration(hole.length_ns)} {between(hole)}", "dim")
    if account.overlap_count:
        first, second, shared = account.overlaps[0]
        pair = f"{shown(first.name)} and {shown(second.name)} by {duration(shared)}"
        yield style(f"also  {counted(account.overlap_count, 'overlap')} of siblings, first {pair}", "dim")
    if account.left_out:
        span, why = account.left_out[0]
        left_out = counted(len(account.left_out), "span")
        yield style(f"      {left_out} left out, first {shown(span.name)}: {shown(why)}", "gap")


def timing_json(account: Times) -> dict[str, Any]:
    """Return the account of a run's time as JSON has it."""
    if account.blind:
        return {"not_evaluable": account.blind}
    return {
        "wall_ms": ms(account.wall_ns),
        "covered_ms": ms(account.covered_ns),
        "untraced_ms": ms(account.untraced_ns),
        "untraced_fraction": round(account.untraced_fraction, 3),
        "exclusive_ms": {role: ms(taken) for role, taken in account.by_role.items()},
        "overlap_count": account.overlap_count,
        "overlaps": [[first.hex_id, second.hex_id, ms(shared)] for first, second, shared in account.overlaps],
        "hole_count": len(account.holes),
        "holes": holes_json(account),
        "left_out": [{"span_id": span.hex_id, "why": why} for span, why in account.left_out],
    }


def holes_json(account: Times) -> list[dict[str, Any]]:
    """Return the longest holes, timed from the begin of the run."""
    begin = account.wall[0]
    return [
        {
            "start_ms": ms(hole.start_ns - begin),
            "end_ms": ms(hole.end_ns - begin),
            "before": None if hole.before is None else hole.before.hex_id,
            "after": None if hole.after is None else hole.after.hex_id,
        }
        for hole in longest(account.holes)
    ]


def ms(ns: int) -> float:
    """Return nanoseconds in milliseconds, exact to the microsecond."""
    return round(ns / 1e6, 3)
