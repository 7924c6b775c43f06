"""When a tree is over, and what is in it: turns what the buffer holds into runs that are decided and spans that pass.

Runs on the worker alone. A whole tree is decided at once; a piecewise one gives up its runs one by one
(:mod:`spangate._parts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from spangate._bounds import Scales
from spangate._buffer import Buffer
from spangate._claims import Claims
from spangate._decide import Decider
from spangate._flush import Flush
from spangate._forest import Unit, has_agent
from spangate._gather import notes_of
from spangate._look import Look, Looks, read
from spangate._parts import Parts
from spangate._patience import Patience
from spangate._records import Trigger
from spangate._run import Run
from spangate._surroundings import surroundings
from spangate._tree import Tree


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
        self._looks = Looks(buffer)
        self._claims = Claims(buffer, self._looks, decider)
        self._parts = Parts(buffer, self._looks, self._claims, decider, patience, unit)

    def tick(self, now: float, flush: Flush | None = None) -> list[float]:
        """Settle what is over at ``now``; a flush cuts membership short, a closing one ends everything.

        Returns:
            For each tree or part whose root has ended and that is held all the same: when its grace is over.
        """
        for decided, late in self._buffer.take_late():
            self._decider.follow(decided, read(late))
        self._scales.weigh()
        for tree, trigger in self._scales.overdue(now):
            self._force(tree, trigger, now)
        waiting = self._parts.settle(now, flush)
        waiting += self._settle_whole(self._buffer.ended(), now, flush)
        if flush is not None and flush.closing:
            for tree in self._buffer.held():
                self._force(tree, "shutdown", now)
        self._looks.keep(self._buffer.ended())
        self._parts.keep(self._buffer.held())
        return waiting

    def _settle_whole(self, trees: Iterable[Tree], now: float, flush: Flush | None) -> list[float]:
        waiting: list[float] = []
        ripe: list[tuple[Tree, Look, Trigger]] = []
        for tree in trees:
            ended_at = tree.root_ended_at
            if tree.piecewise or ended_at is None:
                continue
            quiet_at = tree.quiet_at if tree.open == 0 else None
            trigger = self._patience.over(ended_at, quiet_at, now, flush)
            look = self._looks.at(tree)
            if not has_agent(look.spans):
                self._pass(tree, look, now)
            elif trigger is None and quiet_at is None:
                waiting.append(self._patience.grace_end(ended_at))
            elif trigger is None:
                waiting.append(now)
            elif not (self._claim_strays and self._claims.hold(tree, look)):
                ripe.append((tree, look, "late_span" if tree.standing == "late" else trigger))
        candidates = {candidate for tree, _, _ in ripe for candidate in tree.claims}
        for tree, look, trigger in ripe:
            self._decide(tree, look, trigger)
        if candidates:  # those that no run has claimed wait for nobody now; a flush must not leave them behind
            waiting += self._settle_whole([tree for tree in self._buffer.ended() if tree in candidates], now, flush)
        return waiting

    def _force(self, tree: Tree, trigger: Trigger, now: float) -> None:
        """Settle a tree as it stands; one in which no agent was seen passes, and so does the rest of it."""
        if not tree.piecewise:
            look = self._looks.at(tree)
            if has_agent(look.spans):
                self._decide(tree, look, trigger)
                return
            if trigger == "shutdown":
                self._pass(tree, look, now)
                return
            tree.overflowed = tree.passing = tree.piecewise = True
        self._parts.force(tree, trigger, now)

    def _pass(self, tree: Tree, look: Look, now: float) -> None:
        """Let a tree without an agent role go; below a decided run it follows that run's decision.

        What is still open in it passes when it ends; should that turn out to be an agent, it is a run of its own.
        """
        if tree.open and tree.above is None:
            tree.passing = tree.piecewise = True
            self._parts.force(tree, None, now)
            return
        decided = self._looks.close(tree, look, tree.tree_id)
        if decided is None:
            return
        above = tree.above
        if above is None:
            self._decider.rule(decided, "none")
        else:
            self._decider.rule(decided, above.ruling, above.verdict_span_id)
        self._decider.follow(decided, look)

    def _decide(self, tree: Tree, look: Look, trigger: Trigger) -> None:
        candidates = tree.claims
        decided = self._looks.close(tree, look, tree.tree_id)
        if decided is None and trigger in ("root_end", "late_span", "force_flush") and tree.open == 0:
            return  # a span has joined meanwhile, so it is not over
        if decided is None:
            seized = self._looks.seize(tree)
            if seized is None:
                return
            decided, look = seized
        root = look.spans[0]
        notes = [*self._surroundings, *notes_of(tree, root, look.spans, trigger)]
        run = Run(tree.tree_id, root, look.spans, trigger, notes)
        self._claims.decide(run, look, root, decided, candidates)
