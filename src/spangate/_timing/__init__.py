"""Where the time of a run went: what calls cover of its wall clock, what nothing does, and each span's own time.

*Exclusive* is a span's duration without what its children cover of it. *Untraced* is the wall clock of the run without
all that closed leaf spans cover: model calls, tools and programs. The root never counts as coverage, nor does what
merely contains others: a span that waits is no evidence of work. A program in which an agent recorded what it does is
such a container. Spans that overlap are listed and never added up.

What has no end yet, or ends before it starts, does not enter; nor does what another host's clock has timed. These are
named. Nanoseconds throughout; O(n log n).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spangate._lineage import nearest
from spangate._records import AGENT_ROLES, Role, Span
from spangate._run import Run
from spangate._timing.hosts import elsewhere
from spangate._timing.intervals import Stretch, gaps, length, overlaps, union

LEAVES: Final[tuple[Role, ...]] = ("generation", "tool", "process")
"""Roles of spans that are evidence of work."""
MAX_OVERLAPS: Final = 100
"""So many overlaps are listed."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of untraced time, and the leaf spans before and after it; None at the ends of the run."""

    start_ns: int
    end_ns: int
    before: Span | None = None
    after: Span | None = None

    @property
    def length_ns(self) -> int:
        """How long it is, in nanoseconds."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Times:
    """The account of a run's time, in nanoseconds.

    ``blind`` says why there is none, where there is none: everything else is empty then. ``exclusive_ns`` has the spans
    by their identity (``id(span)``), ``by_role`` their sums. ``overlaps`` are pairs of siblings with the time that they
    share, of ``overlap_count`` pairs the first. ``left_out`` are spans that did not enter, each with the reason.
    """

    blind: str = ""
    wall: Stretch = (0, 0)
    covered: Sequence[Stretch] = ()
    leaves: int = 0
    exclusive_ns: Mapping[int, int] = field(default_factory=dict)
    by_role: Mapping[str, int] = field(default_factory=dict)
    overlap_count: int = 0
    overlaps: Sequence[tuple[Span, Span, int]] = ()
    holes: Sequence[Hole] = ()
    left_out: Sequence[tuple[Span, str]] = ()

    @property
    def wall_ns(self) -> int:
        """How long the run took."""
        return self.wall[1] - self.wall[0]

    @property
    def covered_ns(self) -> int:
        """How much of it leaf spans cover."""
        return length(self.covered)

    @property
    def untraced_ns(self) -> int:
        """How much of it nothing accounts for."""
        return self.wall_ns - self.covered_ns

    @property
    def untimed_ns(self) -> int:
        """How long leaf spans took that another clock has timed: where in the run that was nobody can tell."""
        others = (span for span, _ in self.left_out if span.role in LEAVES)
        return sum(max(0, span.end_ns - span.start_ns) for span in others if span.end_ns is not None)

    @property
    def untraced_fraction(self) -> float:
        """The untraced part of the wall clock, between 0 and 1; 0 where the run took no time."""
        return self.untraced_ns / self.wall_ns if self.wall_ns else 0.0


def times(run: Run) -> Times:
    """Return the account of a run's time."""
    wall = _wall(run)
    if wall is None:
        return Times("the root is still open, so the run has no wall clock")
    left_out = dict(_left_out(run))
    entered = [span for span in run.spans if id(span) not in left_out]
    containers = _containers(run)
    leaves = [span for span in entered if span.role in LEAVES and span is not run.root and id(span) not in containers]
    covered = union(map(_stretch, leaves), wall)
    exclusive_ns = {id(span): _exclusive(run, span, left_out) for span in entered}
    by_role: Counter[str] = Counter()
    for span in entered:
        by_role[span.role] += exclusive_ns[id(span)]
    count, listed = _overlaps(run, left_out)
    return Times(
        wall=wall,
        covered=covered,
        leaves=len(leaves),
        exclusive_ns=exclusive_ns,
        by_role=dict(by_role),
        overlap_count=count,
        overlaps=listed,
        holes=[*_holes(covered, wall, leaves)],
        left_out=[*left_out.values()],
    )


def _wall(run: Run) -> Stretch | None:
    """Return the run's begin and end: its root's. Below a request, where the calls have no agent, what they take."""
    root = run.root
    if all(span is not root for span in run.spans[:1]):
        ended = [span for span in run.spans if span.end_ns is not None]
        if not ended:
            return None
        return min(span.start_ns for span in ended), max(span.end_ns or 0 for span in ended)
    return None if root.end_ns is None or root.end_ns < root.start_ns else _stretch(root)


def _left_out(run: Run) -> Iterator[tuple[int, tuple[Span, str]]]:
    strangers = elsewhere(run)
    for span in run.spans:
        if span.end_ns is None:
            yield id(span), (span, "still open")
        elif span.end_ns < span.start_ns:
            yield id(span), (span, "ends before it starts")
        elif id(span) in strangers:
            yield id(span), (span, strangers[id(span)])


def _containers(run: Run) -> set[int]:
    """Return the programs, by identity, below which there is a part of an agent: it shows what they did."""
    found: set[int] = set()
    if run.of_role("process"):
        program_above = nearest(run, lambda span: span.role == "process")
        for role in AGENT_ROLES:
            for span in run.by_role.get(role, ()):
                program = program_above(span)
                while program is not None and id(program) not in found:
                    found.add(id(program))
                    program = program_above(program)
    return found


def _stretch(span: Span) -> Stretch:
    return span.start_ns, span.end_ns or span.start_ns


def _exclusive(run: Run, span: Span, left_out: Mapping[int, object]) -> int:
    begin, end = _stretch(span)
    children = [_stretch(child) for child in run.children_of(span) if id(child) not in left_out and child is not span]
    return end - begin - length(union(children, (begin, end))) if children else end - begin


def _overlaps(run: Run, left_out: Mapping[int, object]) -> tuple[int, Sequence[tuple[Span, Span, int]]]:
    """Return the overlaps of siblings: how many pairs, and the first of them."""
    total = 0
    listed: list[tuple[Span, Span, int]] = []
    tops = [span for span in run.spans if run.parent_of(span) is None and span is not run.root]
    for family in (tops, *run.children.values()):
        siblings = [span for span in family if id(span) not in left_out]
        if family is not tops and siblings and run.parent_of(siblings[0]) is None:
            continue  # they are among the tops
        count, pairs = overlaps([_stretch(span) for span in siblings], MAX_OVERLAPS - len(listed))
        total += count
        listed += [(siblings[pair.first], siblings[pair.second], pair.length_ns) for pair in pairs]
    return total, listed


def _holes(covered: Sequence[Stretch], wall: Stretch, leaves: Sequence[Span]) -> Iterator[Hole]:
    by_end = sorted(leaves, key=lambda span: span.end_ns or 0)
    by_start = sorted(leaves, key=lambda span: span.start_ns)
    ends, starts = [span.end_ns or 0 for span in by_end], [span.start_ns for span in by_start]
    for begin, end in gaps(covered, wall):
        before, after = bisect_right(ends, begin), bisect_left(starts, end)
        yield Hole(
            begin,
            end,
            by_end[before - 1] if before else None,
            by_start[after] if after < len(by_start) else None,
        )
