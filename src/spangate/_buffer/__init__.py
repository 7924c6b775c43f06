"""Spans of the runs still open. Holds the only lock and never calls out while holding it.

What the hooks do stands in :mod:`spangate._buffer.intake`, with the state, what others tell in
:mod:`spangate._buffer.hearing`, what programs send in :mod:`spangate._buffer.receiving`, log records in
:mod:`spangate._buffer.keeping`; here is what the one thread does that settles what is over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat, takewhile
from types import MappingProxyType
from typing import Any, Final

from spangate._buffer.keeping import Keeping
from spangate._buffer.trace import is_live, take_one
from spangate._buffer.tree import Decided, Glimpse, Ruling, Tree, glimpse_of

_NONE: Final[Mapping[Tree, Decided]] = MappingProxyType({})
_STRIDE = 256
"""So many spans are put in their places while the hooks wait for the lock."""


class Buffer(Keeping):
    """The same trees, as the thread that settles them sees them: what is over is looked at and taken out."""

    def take_late(self) -> list[tuple[Decided, Sequence[Any]]]:
        """Take the spans that ended after their run was decided, with the decision that they follow."""
        with self._lock:
            late: list[tuple[Decided, Sequence[Any]]] = [(decided, decided.waiting) for decided in self._late]
            self._late = {}
            for decided, _ in late:
                decided.waiting = ()
            return late

    def wait(self, pending_s: float, idle_s: float | None) -> None:
        """Sleep until there is something to do, at most ``pending_s`` if something waits, else ``idle_s``."""
        with self._lock:
            if not self._asked:
                pending = bool(self._ended or self._stirred or self._late or self._received_late)
                self._armed = pending
                self._work.wait(pending_s if pending else idle_s)
                self._armed = True
            self._asked = False

    @contextlib.contextmanager
    def let_go(self) -> Iterator[None]:
        """Let other threads in, though the caller may be a signal handler in a thread that holds the lock."""
        lock: Any = self._lock  # what follows is how a Condition treats its lock
        state = lock._release_save() if lock._is_owned() else None  # noqa: SLF001
        try:
            yield
        finally:
            if state is not None:
                lock._acquire_restore(state)  # noqa: SLF001

    def wake(self) -> None:
        """Make the worker look now."""
        with self._lock:
            self._asked = True
            self._work.notify_all()

    def absorb(self, tree: Tree) -> None:
        """Put what has ended in a tree in its place, with pauses in which hooks come to the lock."""
        ids = [*tree.arrived]
        for at in range(0, len(ids), _STRIDE):
            stride = ids[at : at + _STRIDE]
            self._lighten([span for span_id in stride if (span := tree.arrived.get(span_id)) is not None])
            with self._lock:
                self._absorb(tree, stride)
            self.rest()

    def take_fresh(self, tree: Tree) -> list[Any]:
        """Take the ended spans of a tree that nobody has measured."""
        with self._lock:
            fresh, tree.fresh = tree.fresh, []
            return fresh

    def take_stirred(self) -> list[Tree]:
        """Take the piecewise trees in which a span has ended since the last call."""
        with self._lock:
            stirred, self._stirred = list(self._stirred), {}
            return stirred

    def stir(self, tree: Tree) -> None:
        """Have a piecewise tree looked at again."""
        with self._lock:
            if tree in self._trees:
                self._stirred[tree] = None

    def held(self) -> list[Tree]:
        """List every tree that is held, the oldest first."""
        with self._lock:
            return list(self._trees)

    def ended(self) -> list[Tree]:
        """List the trees whose root has ended and that wait for nobody."""
        with self._lock:
            ended = list(self._ended)
        for tree in ended:
            self.absorb(tree)
        return ended

    def is_in_decided(self, order: int) -> bool:
        """Say whether the root of a decided run was open at the moment ``order``."""
        with self._lock:
            return any(True for _ in self._memory.overlapping(order))

    def hold_for(self, tree: Tree, host: Tree, root_id: int) -> bool:
        """Let ``tree`` wait until the run with this root in ``host`` is decided. False if either tree is gone."""
        with self._lock:
            if tree not in self._trees or host not in self._trees:
                return False
            tree.waits_for = host
            host.claims[tree] = root_id
            self._ended.pop(tree, None)
            return True

    def glimpse(self, tree: Tree) -> Glimpse:
        """Return what the tree holds now."""
        self.absorb(tree)
        with self._lock:
            self._absorb(tree, [*tree.arrived])
            return glimpse_of(tree)

    def close(self, tree: Tree, decided: Decided, activity: int, joined: Mapping[Tree, Decided] = _NONE) -> bool:
        """Take a whole tree out for good, with those bound to it. False if it is gone, or has changed.

        ``activity`` was read when somebody looked; ``joined`` are the trees that were bound to it then, each with what
        is to be remembered of it.
        """
        with self._lock:
            if tree not in self._trees:
                return False
            for one in (tree, *tree.bound):
                self._withdraw(one)
            if tree.activity != activity:
                return False
            self._decide(tree, decided)
            for own, its in joined.items():
                self._decide(own, its)
            return True

    def seize(self, tree: Tree, decided: Decided) -> Glimpse | None:
        """Take a whole tree out for good as it is at this moment. None if it is gone."""
        with self._lock:
            if tree not in self._trees:
                return None
            self._withdraw(tree)
            glimpse = glimpse_of(tree)  # before: what comes in between is then one that was open, not of two trees
            self._decide(tree, decided)
            return glimpse

    def _withdraw(self, tree: Tree) -> None:
        """Have whatever happens in a tree from now on wait for the lock."""
        self._slow(tree)
        self._absorb(tree, [*tree.arrived])

    def _decide(self, tree: Tree, decided: Decided) -> None:
        ids = [*tree.spans] if tree.open else ()  # a copy of the items would not be made in one step
        held = [*((span_id, tree.spans[span_id]) for span_id in ids), *tree.twins]
        self._remember(tree, decided, [span_id for span_id, span in held if is_live(span)])
        self._part_with_records(tree, decided, None)
        self._forget(tree)

    def _remember(self, tree: Tree, decided: Decided, open_ids: list[int]) -> None:
        self._order += 1
        decided.end_order = tree.end_order or self._order
        self._memory.remember(decided, open_ids)

    def remember(self, decided: Decided) -> None:
        """Remember a decision about spans that no tree here held."""
        with self._lock:
            self._order += 1
            decided.order = decided.end_order = self._order
            self._memory.remember(decided, [])

    def take(
        self,
        tree: Tree,
        members: Sequence[tuple[int, Any]],
        decided: Decided,
        activity: int | None = None,
        joined: Collection[Tree] = (),
    ) -> int | None:
        """Take some spans out of a piecewise tree; ``decided`` remembers them. The last one takes the tree along.

        ``members`` are ids with the spans as they were when somebody looked. What has ended since then counts as an
        end that came late. ``joined`` are trees bound to them that the caller takes next.

        Returns:
            The tree's activity afterwards. None, and nothing is taken, if the tree is gone or its activity is not
            ``activity`` (None: whatever it is).
        """
        ids, seen = [span_id for span_id, _ in members], [span for _, span in members]
        open_ids = [span_id for span_id, span in members if is_live(span)]
        with self._lock:
            if tree not in self._trees:
                return None
            self._withdraw(tree)
            if activity not in (None, tree.activity):
                return None
            before, size = tree.activity, len(tree.spans) + len(tree.twins)
            held = self._pop_all(tree, ids, seen)
            if held != seen:
                open_ids = [span_id for span_id, span in zip(ids, held, strict=True) if is_live(span)]
                ended = (now for now, then in zip(held, seen, strict=True) if now is not then and now is not None)
                decided.keep(span for span in ended if not is_live(span))
            taken = size - len(tree.spans) - len(tree.twins)
            tree.ended -= taken - len(open_ids)
            tree.weight -= tree.weight * taken // (size or 1)
            self._make_room(tree)
            tree.gone += before - tree.activity + 1
            self._remember(tree, decided, open_ids)
            self._follow(tree, ids, decided)
            self._part_with_records(tree, decided, ids if tree.spans else None)
            self._close_taken_runs(tree, ids, decided, joined)
            if not tree.spans:
                self._forget(tree)
            return tree.activity

    def _close_taken_runs(self, tree: Tree, ids: Sequence[int], decided: Decided, joined: Collection[Tree]) -> None:
        """Let go of the runs among what was taken. What is bound to one, and is not ``joined`` to it, is late."""
        for span_id in tree.opened.keys() & {*ids} if tree.opened else ():
            self._opened.pop(tree.opened.pop(span_id), None)
            for own in [own for own, root_id in tree.bound.items() if root_id == span_id]:
                if own not in joined:
                    own.standing, own.above = "late", decided
                self._unbind(own)

    def _pop_all(self, tree: Tree, ids: Sequence[int], seen: Sequence[Any]) -> list[Any]:
        """Take spans out of a tree; of very many in C, since every hook waits for that."""
        trace = self._traces[tree.trace_id]
        if tree.twins or trace.shared or trace.main is not tree:
            return [self._pop(tree, span_id, span) for span_id, span in zip(ids, seen, strict=True)]
        return [*map(tree.spans.pop, ids, repeat(None))]

    def _pop(self, tree: Tree, span_id: int, seen: Any) -> Any | None:
        held = tree.spans.pop(span_id) if tree.spans.get(span_id) is seen and not tree.twins else None
        if held is None:
            held = take_one(tree, span_id, seen)
        trace = self._traces[tree.trace_id]
        if span_id not in tree.spans and (trace.main is not tree or trace.shared):
            trace.drop(tree, span_id)
        return held

    def since(self, tree: Tree, known: Collection[int]) -> tuple[int, list[Any]]:
        """Return the tree's activity, and the spans that have started since all those ``known`` by their ids."""
        with self._lock:
            fresh = list(takewhile(lambda span_id: span_id not in known, reversed([*tree.spans])))
            return tree.activity, [tree.spans[span_id] for span_id in fresh]

    def let_pass(self, tree: Tree) -> None:
        """Have a tree decided part by part from now on; whatever is no agent passes."""
        with self._lock:
            tree.passing = tree.piecewise = True
            self._withdraw(tree)

    def is_held(self, tree: Tree) -> bool:
        """Say whether the tree is still here."""
        with self._lock:
            return tree in self._trees

    def rule(self, decided: Decided, ruling: Ruling, verdict_span_id: int | None = None) -> Sequence[Any]:
        """Write down what was decided, and hand over the spans that ended while the decision was pending."""
        with self._lock:
            decided.ruling, decided.verdict_span_id = ruling, verdict_span_id
            waiting, decided.waiting = decided.waiting, ()
            for its in decided.joined:
                its.ruling, its.verdict_span_id = ruling, verdict_span_id
                waiting, its.waiting = [*waiting, *its.waiting], ()
            return waiting

    def free_claims(self, host: Tree, claims: Collection[Tree]) -> None:
        """Let these of the trees that wait for ``host`` wait no longer."""
        with self._lock:
            self._free_claims(host, claims)

    def _free_claims(self, host: Tree, claims: Collection[Tree]) -> None:
        for claim in claims:
            host.claims.pop(claim, None)
            claim.waits_for = None
            if claim in self._trees:
                self._ended[claim] = None

    def _forget(self, tree: Tree) -> None:
        del self._trees[tree]
        self._count -= tree.room + tree.received_count
        self._ended.pop(tree, None)
        self._stirred.pop(tree, None)
        self._free_claims(tree, list(tree.claims))
        self._close_runs(tree)
        if self._traces[tree.trace_id].drop_tree(tree):
            del self._traces[tree.trace_id]

    def clear(self) -> int:
        """Drop every tree. Returns how many ended spans that were."""
        with self._lock:
            for tree in self._trees:
                self._withdraw(tree)
            ended = sum(tree.ended for tree in self._trees)
            ended += sum(tree.received_count for tree in self._trees)
            ended += sum(received.count for _, received in self._received_late)
            self._drop_records()
            self._traces, self._trees, self._ended, self._stirred, self._late = {}, {}, {}, {}, {}
            self._received_late, self._opened = [], {}
            self._count = self._unread = 0
            self._sent.clear()
            self._sent_size = 0
            return ended

    def shut(self) -> int:
        """Drop every tree and open none any more. Returns how many ended spans that were."""
        with self._lock:
            self._is_shut = True
            return self.clear()

    def count_spans(self) -> int:
        """Count the spans that are held."""
        with self._lock:
            return sum(len(tree.spans) + len(tree.twins) + tree.received_count for tree in self._trees)

    def __repr__(self) -> str:
        """A status line."""
        return f"<Buffer {len(self._trees)} trees, {len(self._ended)} ended, {len(self._stirred)} stirred>"
