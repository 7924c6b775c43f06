"""Piecewise trees: runs below a request handler, or below one span over many agents, each with its own clock.

What lies outside the runs passes, a finished branch at once; when the root has ended, everything that has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spangate._buffer import Buffer
from spangate._buffer.gather import notes_of, remembered, run_id_of_part, told_notes
from spangate._buffer.tree import Decided, Tree
from spangate._forest import Part, Unit, branches, find_runs, split_below
from spangate._records import AGENT_ROLES, Finding, Span, Trigger
from spangate._release.flush import Flush
from spangate._run import Run
from spangate._settle.beside import Beside
from spangate._settle.claims import Claims
from spangate._settle.decide import Decider
from spangate._settle.log_records import hand_over
from spangate._settle.look import Look, Looks, read
from spangate._settle.patience import Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every run of a gate.

    ``notes`` are what each is told of the process that it runs in; ``max_age_s`` is after how many seconds a part of a
    tree is settled as it stands.
    """

    patience: Patience
    unit: Unit
    max_age_s: float
    notes: Sequence[Finding]


@dataclass(slots=True)
class _Clock:
    """When a part was first seen, and last seen to change, and since when its root has ended; seconds."""

    born: float
    state: tuple[int, int]
    since: float
    root_ended_at: float | None = None


class Parts:
    """Settles piecewise trees part by part. Used by the worker alone."""

    def __init__(
        self, buffer: Buffer, looks: Looks, claims: Claims, beside: Beside, decider: Decider, terms: Terms
    ) -> None:
        self._buffer = buffer
        self._looks = looks
        self._claims = claims
        self._beside = beside
        self._decider = decider
        self._terms = terms
        self._clocks: dict[Tree, dict[int, _Clock]] = {}

    def stirred(self) -> list[Tree]:
        """Return the piecewise trees in which something has changed since the last call."""
        return [tree for tree in self._buffer.take_stirred() if self.is_piecewise(tree)]

    def is_piecewise(self, tree: Tree) -> bool:
        """Say whether a tree is decided part by part. One whose handler turns out to be a tool or an agent is not."""
        if tree.piecewise and not tree.passing and self._terms.unit == "tree":
            tree.piecewise = self._looks.at(tree).spans[0].role == "entry"
        return tree.piecewise

    def settle(self, trees: Iterable[Tree], now: float, flush: Flush | None) -> list[float]:
        """Settle the parts that are over. Returns the end of the grace of each that is held though its root ended."""
        return [end for tree in trees for end in self._settle_tree(tree, now, flush, None)]

    def keep(self, trees: Collection[Tree]) -> None:
        """Forget the clocks of all other trees."""
        for tree in self._clocks.keys() - set(trees):
            del self._clocks[tree]

    def force(self, tree: Tree, trigger: Trigger | None, now: float) -> None:
        """Let pass what can; with a trigger, settle the parts of the tree as they stand."""
        self._settle_tree(tree, now, None, trigger)

    def _settle_tree(self, tree: Tree, now: float, flush: Flush | None, forced: Trigger | None) -> list[float]:
        look = self._looks.at(tree, whole=forced is not None)
        root = look.spans[0]
        parts, outside = self._divide(tree, root, look.spans)
        waiting: list[float] = []
        kept: set[int] = set()
        for part in parts:
            clock = self._read_clock(tree, part, now)
            trigger = self._trigger(clock, now, flush, forced) or _at_once(part)
            if trigger is not None and self._decide(tree, part, look, trigger, is_quiet=clock.state[1] == 0):
                continue
            kept.update(id(span) for span in part.spans)
            if clock.root_ended_at is not None:
                waiting.append(self._terms.patience.grace_end(clock.root_ended_at))
                self._buffer.stir(tree)
        self._pass_outside(tree, look, outside, kept, forced, now)
        self._settle_beside(tree, look, kept, forced)
        return waiting

    def _settle_beside(self, tree: Tree, look: Look, kept: set[int], forced: Trigger | None) -> None:
        """Settle what programs recorded in other traces, unless the run that started them goes on."""
        if look.beside and (forced is not None or not self._buffer.is_held(tree)):
            senders = {span.span_id for span in look.spans if id(span) in kept}
            known = {id(span) for span in tree.heard}
            free = [part for part in look.beside if id(part.root) in known and part.root.sender_id not in senders]
            self._looks.forget(tree, [span for part in free for span in part.spans])
            self._beside.settle(free, forced or "root_end", f"{tree.tree_id}.{tree.runs}")
        if not self._buffer.is_held(tree):
            self._beside.settle_all(tree.heard, forced or "root_end", f"{tree.tree_id}.{tree.runs}-rest")
            tree.heard = []
            for received in self._buffer.take_received(tree):  # it came when nobody was to look any more
                if self._buffer.receive(tree.trace_id, [received]).outcome != "taken":
                    self._decider.lose(received.count, "overload")

    def _pass_outside(
        self, tree: Tree, look: Look, outside: Sequence[Span], kept: set[int], forced: Trigger | None, now: float
    ) -> None:
        """Let pass what belongs to no run and waits for none; at a bound, all that has ended."""
        root = look.spans[0]
        if tree.root is not None:
            outside = [span for span in outside if span is not root]
        held_open = bool(tree.cut) or all(span.end_ns is None for span in outside)
        is_cut = forced == "memory" and held_open  # nothing that has ended takes up the room
        if forced == "shutdown" or is_cut:
            self._let_pass(tree, look, outside, is_cut=is_cut)
            return
        at_once = forced is not None or tree.passing or root.end_ns is not None
        self._let_pass(tree, look, _finished(look.spans, outside, kept, at_once=at_once))
        if forced is not None:
            tree.cut |= _ids(span for span in outside if span.end_ns is None)
            hand_over(self._buffer.take_records(tree, _ids(outside)), "none", self._buffer.rest)
            tree.opened_at = now  # so that it does not reach the same bound again at once

    def _divide(self, tree: Tree, root: Span, spans: Sequence[Span]) -> tuple[list[Part], list[Span]]:
        if not tree.passing:
            return find_runs(root, spans, self._terms.unit)
        if root.role in AGENT_ROLES:
            return [Part(root, root, spans)], []
        return split_below(root, spans, AGENT_ROLES)

    def _read_clock(self, tree: Tree, part: Part, now: float) -> _Clock:
        bound = self._bound_to(tree, part)
        state = (
            len(part.spans) + sum(len(other.spans) for other in bound),
            sum(1 for span in part.spans if span.end_ns is None) + sum(other.open for other in bound),
        )
        clocks = self._clocks.setdefault(tree, {})
        clock = clocks.setdefault(part.root.span_id, _Clock(now, state, now))
        if clock.state != state:
            clock.state, clock.since = state, now
        if part.root.end_ns is not None and clock.root_ended_at is None:
            clock.root_ended_at = now
        return clock

    def _bound_to(self, tree: Tree, part: Part) -> list[Tree]:
        """List the trees that carry the id of a run in a part of a tree."""
        ids = _ids(part.spans) if tree.bound else ()
        return [other for other in [*tree.bound] if tree.bound.get(other) in ids]

    def _trigger(self, clock: _Clock, now: float, flush: Flush | None, forced: Trigger | None) -> Trigger | None:
        if forced is not None and (forced != "age" or now - clock.born >= self._terms.max_age_s):
            return forced
        if clock.root_ended_at is None:
            return None
        quiet_at = clock.since if clock.state[1] == 0 else None
        return self._terms.patience.over(clock.root_ended_at, quiet_at, now, flush)

    def _decide(self, tree: Tree, part: Part, look: Look, trigger: Trigger, *, is_quiet: bool) -> bool:
        """Decide a part. False if a span has joined it meanwhile, so that it is not over."""
        run_id = run_id_of_part(tree, part.spans)
        decided = remembered(tree, run_id, part.spans)
        candidates = self._claims.of_part(tree, part)
        bound = self._bound_to(tree, part)
        if not self._take(tree, part, look, decided, bound, is_quiet=is_quiet):
            return False
        tree.runs += 1
        self._buffer.free_claims(tree, candidates)
        told = self._buffer.take_told(tree, _ids(part.spans))
        notes = [*self._terms.notes, *notes_of(tree, part.root, part.spans, trigger), *told_notes(told, part.spans)]
        claimed = [other for other in look.beside if other.root.sender_id in _ids(part.spans)]
        spans = [*part.spans, *(span for other in claimed for span in other.spans)]
        self._looks.forget(tree, spans)
        roots = [other.root for other in claimed]
        run = Run(run_id, part.root, spans, trigger, notes, claimed=roots, exits=told.exits)
        if bound:
            run = self._looks.with_bound(run, decided, bound)
        self._claims.decide(run, part.bearer, decided, candidates)
        return True

    def _take(
        self, tree: Tree, part: Part, look: Look, decided: Decided, bound: Collection[Tree], *, is_quiet: bool
    ) -> bool:
        members = _members(part.spans)
        if not is_quiet:
            return self._buffer.take(tree, members, decided, None, bound) is not None
        activity = look.activity
        while self._buffer.take(tree, members, decided, activity, bound) is None:
            activity, fresh = self._buffer.since(tree, look.ids)
            below = {span.parent_id for span in read(fresh).spans}
            is_busy = any(other.open for other in bound)
            if is_busy or not self._buffer.is_held(tree) or not below.isdisjoint(decided.span_ids or _ids(part.spans)):
                return False
        return True

    def _let_pass(self, tree: Tree, look: Look, passing: Sequence[Span], *, is_cut: bool = False) -> None:
        if not passing:
            return
        root = look.spans[0]
        if passing[0] is root:
            tree.root = root
        decided = remembered(tree, tree.tree_id, passing, is_entry=root.role == "entry")
        decided.is_cut = is_cut
        self._buffer.take(tree, _members(passing), decided)
        self._buffer.take_told(tree, _ids(passing))
        self._looks.forget(tree, passing)
        self._decider.rule(decided, "none")
        self._decider.let_pass(passing)


def _at_once(part: Part) -> Trigger | None:
    """Say that a run which programs alone have recorded is over: they have ended, and there is nothing to wait for."""
    is_over = part.root.sender_id is not None or part.root.end_ns is not None
    return "root_end" if is_over and all(span.sender_id is not None for span in part.spans) else None


def _finished(spans: Sequence[Span], outside: Sequence[Span], kept: set[int], *, at_once: bool) -> Sequence[Span]:
    """Return the spans outside the runs that nothing waits for: of finished branches, or all that have ended."""
    if at_once:
        return [span for span in outside if span.end_ns is not None]
    free = {id(span) for span in outside}
    ids = _ids(spans)
    return [
        span
        for branch in branches(spans[0], spans)
        if all(span.end_ns is not None and id(span) not in kept and _has_its_parent(span, ids) for span in branch)
        for span in branch
        if id(span) in free
    ]


def _has_its_parent(span: Span, ids: frozenset[int]) -> bool:
    """Say whether what a program sent is below something that is here: else its parent may be on its way."""
    return span.sender_id is None or span.parent_id is None or span.parent_id in ids


def _members(spans: Sequence[Span]) -> list[tuple[int, Any]]:
    return [(span.span_id, span.source) for span in spans if span.sender_id is None]


def _ids(spans: Iterable[Span]) -> frozenset[int]:
    return frozenset(span.span_id for span in spans)
