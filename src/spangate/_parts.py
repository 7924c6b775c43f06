"""Piecewise trees: runs below a request handler, or below one span over many agents, each with its own clock.

What lies outside the runs passes, a finished branch at once; when the root has ended, everything that has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spangate._buffer import Buffer
from spangate._claims import Claims
from spangate._decide import Decider
from spangate._flush import Flush
from spangate._forest import Part, Unit, branches, find_runs, split_below
from spangate._gather import notes_of, remembered
from spangate._look import Look, Looks
from spangate._patience import Patience
from spangate._records import AGENT_ROLES, Span, Trigger
from spangate._run import Run
from spangate._tree import Tree


@dataclass(slots=True)
class _Clock:
    """When a part was last seen to change, and since when its root has ended; seconds."""

    state: tuple[int, int]
    since: float
    root_ended_at: float | None = None


class Parts:
    """Settles piecewise trees part by part. Used by the worker alone."""

    def __init__(
        self, buffer: Buffer, looks: Looks, claims: Claims, decider: Decider, patience: Patience, unit: Unit
    ) -> None:
        self._buffer = buffer
        self._looks = looks
        self._claims = claims
        self._decider = decider
        self._patience = patience
        self._unit = unit
        self._clocks: dict[Tree, dict[int, _Clock]] = {}

    def settle(self, now: float, flush: Flush | None) -> list[float]:
        """Settle the parts that are over. Returns the end of the grace of each that is held though its root ended."""
        waiting: list[float] = []
        for tree in self._buffer.take_stirred():
            waiting += self._settle_tree(tree, now, flush, None)
        return waiting

    def keep(self, trees: Collection[Tree]) -> None:
        """Forget the clocks of all other trees."""
        for tree in self._clocks.keys() - set(trees):
            del self._clocks[tree]

    def force(self, tree: Tree, trigger: Trigger | None, now: float) -> None:
        """Let pass what can; with a trigger, settle every part of the tree as it stands."""
        self._settle_tree(tree, now, None, trigger)

    def _settle_tree(self, tree: Tree, now: float, flush: Flush | None, forced: Trigger | None) -> list[float]:
        look = _with_root(tree, self._looks.at(tree))
        root = look.spans[0]
        if self._unit == "tree" and root.role != "entry" and not tree.passing:
            tree.piecewise = False  # the handler turned out to be a tool or an agent: its tree is one run
            return []
        parts, outside = self._divide(tree, root, look.spans)
        if tree.root is not None:
            outside.remove(root)
        if len(parts) > 1:
            self._buffer.free_claims(tree)
        waiting: list[float] = []
        kept: set[int] = set()
        for part in parts:
            clock = self._read_clock(tree, part, now)
            ready = forced or ("memory" if tree.overflowed else self._trigger(clock, now, flush))
            if ready is not None:
                self._decide(tree, part, look, ready)
                continue
            kept.update(id(span) for span in part.spans)
            if clock.root_ended_at is not None:
                waiting.append(self._patience.grace_end(clock.root_ended_at))
                self._buffer.stir(tree)
        at_once = tree.passing or root.end_ns is not None
        passing = outside if forced == "shutdown" else _finished(look.spans, outside, kept, at_once=at_once)
        self._let_pass(tree, look, passing)
        return waiting

    def _divide(self, tree: Tree, root: Span, spans: Sequence[Span]) -> tuple[list[Part], list[Span]]:
        if not tree.passing:
            return find_runs(root, spans, self._unit)
        if root.role in AGENT_ROLES:
            return [Part(root, root, spans)], []
        return split_below(root, spans, AGENT_ROLES)

    def _read_clock(self, tree: Tree, part: Part, now: float) -> _Clock:
        state = len(part.spans), sum(1 for span in part.spans if span.end_ns is None)
        clocks = self._clocks.setdefault(tree, {})
        clock = clocks.setdefault(part.root.span_id, _Clock(state, now))
        if clock.state != state:
            clock.state, clock.since = state, now
        if part.root.end_ns is not None and clock.root_ended_at is None:
            clock.root_ended_at = now
        return clock

    def _trigger(self, clock: _Clock, now: float, flush: Flush | None) -> Trigger | None:
        if clock.root_ended_at is None:
            return None
        quiet_at = clock.since if clock.state[1] == 0 else None
        return self._patience.over(clock.root_ended_at, quiet_at, now, flush)

    def _decide(self, tree: Tree, part: Part, look: Look, trigger: Trigger) -> None:
        tree.runs += 1
        run_id = f"{tree.tree_id}.{tree.runs}"
        decided = remembered(tree, run_id, part.spans)
        candidates = tree.claims
        self._buffer.take(tree, _ids(part.spans), decided)
        self._buffer.free_claims(tree)
        run = Run(run_id, part.root, part.spans, trigger, notes_of(tree, part.root, part.spans, trigger))
        self._claims.decide(run, look, part.bearer, decided, candidates)

    def _let_pass(self, tree: Tree, look: Look, passing: Sequence[Span]) -> None:
        if not passing:
            return
        root = look.spans[0]
        if passing[0] is root:
            tree.root = root, look.source(root)
        decided = remembered(tree, tree.tree_id, passing, is_entry=root.role == "entry")
        self._buffer.take(tree, _ids(passing), decided)
        self._decider.rule(decided, "none")
        self._decider.let_pass(passing, look)


def _with_root(tree: Tree, look: Look) -> Look:
    """Put a root that has left already back in front."""
    if tree.root is None:
        return look
    root, source = tree.root
    return Look([root, *look.spans], {**look.sources, id(root): source}, look.activity)


def _finished(spans: Sequence[Span], outside: Sequence[Span], kept: set[int], *, at_once: bool) -> Sequence[Span]:
    """Return the spans outside the runs that nothing waits for: of finished branches, or all that have ended."""
    if at_once:
        return [span for span in outside if span.end_ns is not None]
    free = {id(span) for span in outside}
    return [
        span
        for branch in branches(spans[0], spans)
        if all(span.end_ns is not None and id(span) not in kept for span in branch)
        for span in branch
        if id(span) in free
    ]


def _ids(spans: Sequence[Span]) -> frozenset[int]:
    return frozenset(span.span_id for span in spans)
