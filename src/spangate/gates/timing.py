"""Timing: a span takes time and does not give any back, and little of a run's time is accounted for by nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spangate._records import Finding, not_evaluable
from spangate._run import Run
from spangate._timing import Hole, Times, times
from spangate._units import duration, shown

_WORK = frozenset({"tool", "process"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Finds spans that end before they start, spans with two parents and, where a ceiling is set, untraced time.

    Attributes:
        max_untraced_fraction: Ceiling on the part of the run's wall clock that no model call, tool or program covers,
            between 0 and 1; None for no ceiling. A run that is one call by itself, or has an open root, is not
            evaluable then.
        require_tool_time: Whether a run has to spend time in tools or programs that is theirs alone.

    Raises:
        ValueError: a fraction that is not between 0 and 1.
    """

    max_untraced_fraction: float | None = None
    require_tool_time: bool = False

    def __post_init__(self) -> None:
        fraction = self.max_untraced_fraction
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"max_untraced_fraction={fraction!r}: this may be a number from 0 to 1")

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield spans in the order of their starts, then what is wrong with the run as a whole."""
        for span in run.spans:
            if span.end_ns is not None and span.end_ns < span.start_ns:
                lost = duration(span.start_ns - span.end_ns)
                yield Finding("timing.inverted_span", span, f"ends {lost} before it starts")
        yield from _two_parents(run)
        if self.max_untraced_fraction is None and not self.require_tool_time:
            return
        account = run.remember(times)
        if account.blind:
            yield not_evaluable("timing.not_evaluable", account.blind)
            return
        if self.max_untraced_fraction is not None:
            yield from _untraced(run, account, self.max_untraced_fraction)
        if self.require_tool_time and not any(account.by_role.get(role) for role in _WORK):
            yield Finding("timing.no_tool_time", run.root, "no tool and no program took any time of its own")


def _two_parents(run: Run) -> Iterator[Finding]:
    """Yield the spans that were recorded twice, below two parents: nobody can say whose time they are."""
    if not run.twins:
        return
    for span in run.spans:
        if span in run.twins:
            first = run.by_id[span.trace_id][span.span_id]
            if first.parent_id != span.parent_id:
                above = [f"{one.parent_id or 0:016x}" for one in (first, span)]
                yield Finding("timing.ambiguous_parent", span, f"recorded below {above[0]} and below {above[1]}")


def _untraced(run: Run, account: Times, ceiling: float) -> Iterator[Finding]:
    if not account.leaves and run.root.role in ("generation", "tool"):
        yield not_evaluable("timing.not_evaluable", "the run is one call, and nothing lies around it")
    elif account.untraced_fraction > ceiling >= 1 - (account.covered_ns + account.untimed_ns) / account.wall_ns:
        why = f"{duration(account.untimed_ns)} of its calls were timed by another clock, and may fill what is untraced"
        yield not_evaluable("timing.not_evaluable", why)
    elif account.untraced_fraction > ceiling:
        longest = max(account.holes, key=lambda hole: hole.length_ns)
        yield Finding(
            "timing.untraced",
            run.root,
            f"{account.untraced_fraction:.1%} of {duration(account.wall_ns)} is untraced, more than {ceiling:.1%}; "
            f"the longest hole is {_hole(longest)}",
        )


def _hole(hole: Hole) -> str:
    before = "the start" if hole.before is None else shown(hole.before.name)
    after = "the end" if hole.after is None else shown(hole.after.name)
    return f"{duration(hole.length_ns)} between {before} and {after}"
