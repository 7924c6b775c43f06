"""When a tree is over, and what is in it: turns what the buffer holds into runs that are decided and spans that pass.

Runs on the worker alone. A whole tree is decided at once; a piecewise one gives up its runs one by one
(:mod:`spangate._settle.parts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from spangate._buffer import Buffer
from spangate._buffer.gather import notes_of, told_notes
from spangate._buffer.tree import Tree
from spangate._forest import Unit, has_agent
from spangate._hosts import look_after_programs
from spangate._records import Trigger
from spangate._release.flush import Flush
from spangate._run import Run
from spangate._settle.beside import Beside
from spangate._settle.bounds import Scales
from spangate._settle.claims import Claims
from spangate._settle.decide import Decider
from spangate._settle.look import Look, Looks
from spangate._settle.parts import Parts, Terms
from spangate._settle.patience import Patience
from spangate._surroundings import surroundings

_Ripe: TypeAlias = tuple[Tree, Look, Trigger]
_AT_REST = ("root_end", "late_span", "force_flush")
"""Triggers that wait until nothing is open."""


class Settler:
    """Looks at the buffer again and again and settles what is over."""

    def __init__(
        self, buffer: Buffer, decider: Decider, scales: Scales, patience: Patience, *, unit: Unit, claim_strays: bool
    ) -> None:
        self._buffer = buffer
        self._decider = decider
        self._scales = scales
        self._patience = patience
        self._claim_strays = claim_strays
        self._surroundings = surroundings(os.environ)
        self._looks = Looks(buffer, decider.model)
        self._claims = Claims(buffer, self._looks, decider, unit)
        self._beside = Beside(buffer, decider, self._surroundings)
        terms = Terms(patience=patience, unit=unit, max_age_s=scales.max_age_s, notes=self._surroundings)
        self._parts = Parts(buffer, self._looks, self._claims, self._beside, decider, terms)

    def tick(self, now: float, flush: Flush | None = None) -> list[float]:
        """Settle what is over at ``now``; a flush cuts membership short, a closing one ends everything.

        Returns:
            For each tree or part whose root has ended and that is held all the same: when its grace is over.
        """
        self._claims.refresh()
        for decided, late in self._buffer.take_late():
            self._decider.follow_late(decided, late)
        self._beside.follow_late()
        self._looks.read_requests()
        self._scales.weigh()
        for tree, trigger in self._scales.overdue(now):
            self._force(tree, trigger, now)
        stirred = self._parts.stirred()
        if stirred or any(tree.quiet_at is None for tree in self._buffer.ended()):
            look_after_programs()  # so that no run waits for what is over
        waiting, ripe = self._look_at_whole(self._buffer.ended(), now, flush)  # strays first: their runs may go next
        claims = {claim for tree in stirred for claim in tree.claims}
        waiting += self._parts.settle(stirred, now, flush)
        waiting += self._decide_ripe(ripe, claims, now, flush)
        if flush is not None and flush.closing:
            for tree in self._buffer.held():
                self._force(tree, "shutdown", now)
        self._looks.keep(self._buffer.ended())
        self._parts.keep(self._buffer.held())
        return waiting

    def give_up(self) -> None:
        """Drop everything that is held, and count it: something in it keeps the rest from being settled."""
        self._decider.lose(self._buffer.clear(), "defect")

    def _look_at_whole(self, trees: Iterable[Tree], now: float, flush: Flush | None) -> tuple[list[float], list[_Ripe]]:
        """Let pass what is no run, hold what may be a stray. Returns until when to wait for others, and those over."""
        waiting: list[float] = []
        ripe: list[_Ripe] = []
        for tree in trees:
            ended_at = tree.root_ended_at
            if tree.piecewise or ended_at is None:
                continue
            quiet_at = tree.quiet_at
            trigger = self._patience.over(ended_at, quiet_at, now, flush)
            if tree.is_member:
                if trigger is not None or quiet_at is not None:
                    self._hand_on(tree)
                continue
            look = self._looks.at(tree)
            if not (has_agent(look.spans) or (look.beside and trigger is None)):
                if quiet_at is None or not self._is_stray(tree, look):
                    self._pass(tree, look, now)
            elif trigger is None:
                waiting.append(now if quiet_at is not None else self._patience.grace_end(ended_at))
            elif not self._is_stray(tree, look):
                ripe.append((tree, look, "late_span" if tree.standing == "late" else trigger))
        return waiting, ripe

    def _hand_on(self, tree: Tree) -> None:
        """Hand a tree on as it stands, to the process that holds its run. What ends later follows."""
        decided, look = self._looks.seize(tree, tree.tree_id) or (None, None)
        if decided is None or look is None:
            return
        decided.is_member = True
        self._decider.rule(decided, "none")
        self._decider.follow(decided, look)
        self._looks.free(look)

    def _is_stray(self, tree: Tree, look: Look) -> bool:
        return self._claim_strays and self._claims.hold(tree, look)

    def _decide_ripe(self, ripe: Sequence[_Ripe], claims: set[Tree], now: float, flush: Flush | None) -> list[float]:
        """Decide what is over, and at once what no run has claimed of ``claims`` and its own: a flush wants it all."""
        claims = claims.union(claim for tree, _, _ in ripe for claim in tree.claims)
        waiting = [end for row in ripe for end in self._decide(*row)]
        if claims:
            freed, more = self._look_at_whole([tree for tree in self._buffer.ended() if tree in claims], now, flush)
            waiting += [*freed, *self._decide_ripe(more, set(), now, flush)]
        return waiting

    def _force(self, tree: Tree, trigger: Trigger, now: float) -> None:
        """Settle a tree as it stands; one in which no agent was seen passes, and so does the rest of it."""
        if tree.host is not None:
            if trigger == "idle":
                return  # the run that it belongs to may be busy
            tree = tree.host
        if not self._buffer.is_held(tree):
            return
        if tree.is_member:
            self._hand_on(tree)
            return
        if not self._parts.is_piecewise(tree):
            look = self._looks.at(tree)
            if tree.above is not None and not has_agent(look.spans):
                self._pass(tree, look, now, at_once=True)
                return
            if has_agent(look.spans):
                self._decide(tree, look, trigger)
                return
            self._buffer.let_pass(tree)
            tree.overflowed = trigger != "shutdown"
        self._parts.force(tree, trigger, now)

    def _pass(self, tree: Tree, look: Look, now: float, *, at_once: bool = False) -> None:
        """Let a tree without an agent role go; below a decided run it follows that run's decision.

        What is still open in it passes when it ends; should that turn out to be an agent, it is a run of its own.
        """
        above = tree.above
        if tree.open and above is None:
            self._buffer.let_pass(tree)
            self._parts.force(tree, None, now)
            return
        run_id = tree.tree_id if above is None else above.run_id
        decided = self._looks.close(tree, look, run_id)
        if decided is None and at_once:
            decided, look = self._looks.seize(tree, run_id) or (None, look)
        if decided is None:
            return
        if above is None:
            self._decider.rule(decided, "none")
        else:
            self._decider.rule(decided, above.ruling, above.verdict_span_id)
        self._decider.follow(decided, look)
        self._beside.settle(look.beside, "root_end", tree.tree_id)
        self._looks.free(look)

    def _decide(self, tree: Tree, look: Look, trigger: Trigger) -> list[float]:
        """Decide a tree as it was seen, or as it stands if it may not wait. Returns its grace's end if it goes on."""
        candidates = list(tree.claims)
        decided = self._looks.close(tree, look, tree.tree_id)
        if decided is None and trigger in _AT_REST and all(span.end_ns is not None for span in look.spans):
            ended_at = tree.root_ended_at  # a span has joined meanwhile
            return [] if ended_at is None else [self._patience.grace_end(ended_at)]
        if decided is None:
            decided, look = self._looks.seize(tree, tree.tree_id) or (None, look)
        if decided is None:
            return []
        root = look.spans[0]
        told = self._buffer.take_told(tree)
        notes = [*self._surroundings, *notes_of(tree, root, look.spans, trigger), *told_notes(told, look.spans)]
        claimed = [part.root for part in look.beside]
        run = Run(tree.tree_id, root, look.all_spans, trigger, notes, claimed=claimed, exits=told.exits)
        if look.joined:
            run = self._looks.joined_by(run, look.joined)
        self._claims.decide(run, root, decided, candidates)
        return []
