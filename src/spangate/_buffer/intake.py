"""What the hooks do with the live trees: spans are taken in as they start, and replaced as they end.

State: ``_traces`` finds the tree of a span, ``_trees`` holds every tree in the order of its start, ``_ended`` the trees
whose root has ended, ``_stirred`` the piecewise trees in which something changed, ``_late`` the decisions that spans
ended after. It is read and written under ``_lock``. ``_count`` is how many spans there is room given to. ``_armed``
says that the worker will look by itself within ``settle_s``, so that an ending span need not wake it.

Most spans take a quick way without the lock. ``_quick`` finds by trace id the trees in which a start or an end needs no
thought: alone in a trace of which no decision is remembered, not piecewise, no id there twice, the root open. A start
there is one ``setdefault`` on ``Tree.spans``, an end one item in ``Tree.arrived``, which whoever holds the lock puts in
its place. Either step is atomic in CPython, and ``Tree.quick`` is read after it: it is withdrawn before anything is
decided about a tree, so that a hook which comes too late for that knows it, and takes the lock.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from spangate._buffer.memory import Memory
from spangate._buffer.trace import Trace, end_in, is_live, is_open_in
from spangate._buffer.tree import Decided, Tree, Unseen

FRESH_LIMIT = 4096
"""So many unmeasured spans of one tree wake the worker, though its root has not ended."""
ARRIVED_LIMIT = 32
"""So many ended spans of a tree wait for their places before a hook puts them there."""
LEAST_ROOM = 32
"""For so many spans at least there is room in a quick tree before they are counted."""
CROWDED = 2
"""What part of all spans that there is room for makes the buffer crowded."""


Question: TypeAlias = Callable[[], bool]
Rest: TypeAlias = Callable[[], None]


def _restless(_is_hurried: Question) -> Rest:
    return lambda: None


class Intake:
    """All trees that are held, and a bounded memory of those that were decided, as threads that record spans see them.

    ``clock`` gives monotonic seconds. When ``max_spans`` are held, whoever settles them has fallen behind or hangs; no
    further ones are taken in then, and the trees that they would have joined are marked. ``rest`` is what whoever
    settles them calls between two steps of long work; ``pace`` makes it of a question whether there is time for a rest.
    """

    def __init__(
        self, clock: Callable[[], float], max_spans: int = sys.maxsize, pace: Callable[[Question], Rest] = _restless
    ) -> None:
        self._clock = clock
        self._max_spans = max_spans
        self.rest = pace(self.is_crowded)
        self._reset(frozenset())

    def _reset(self, inherited: frozenset[tuple[int, int]]) -> None:
        self._lock = threading.RLock()  # a finalizer or a signal handler may end a span while this thread holds it
        self._work = threading.Condition(self._lock)
        self._traces: dict[int, Trace] = {}
        self._quick: dict[int, Tree] = {}
        self._trees: dict[Tree, None] = {}
        self._ended: dict[Tree, None] = {}
        self._stirred: dict[Tree, None] = {}
        self._late: dict[Decided, None] = {}
        self._count = 0
        self._armed = False
        self._asked = False
        self._order = 0
        self._memory = Memory()
        self._inherited = inherited

    def after_fork(self) -> None:
        """Drop what belongs to the parent process, and remember which of its spans were open: they are its own.

        The lock is not taken: a thread that held it at the fork does not exist here.
        """
        held = [(tree, span_id, span) for tree in self._trees for span_id, span in [*tree.spans.items(), *tree.twins]]
        still_open = {
            (tree.trace_id, span_id) for tree, span_id, span in held if is_live(span) and span_id not in tree.arrived
        }
        self._reset(self._inherited | still_open | self._memory.open_ids())

    def join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        """Add a started span to the tree that holds its parent, and return that tree, if one here does."""
        tree = self._quick.get(trace_id)
        if tree is not None:
            spans = tree.spans
            if parent_id in spans and len(spans) < tree.room and spans.setdefault(span_id, span) is span:
                return tree if tree.quick else self._join_after_all(tree, span_id, parent_id, span)
        with self._lock:
            return self._join(trace_id, span_id, parent_id, span)

    def _join_after_all(self, tree: Tree, span_id: int, parent_id: int, span: Any) -> Tree | None:
        """Join by the lock what was put into a tree just when the quick way to it was closed."""
        with self._lock:
            if self._memory.open_under(tree.trace_id, span_id) is not None:
                return tree  # whoever decided the tree has seen it
            if tree.spans.get(span_id) is span:
                tree.spans.pop(span_id, None)  # whoever settles the tree may be taking it apart
                if tree in self._trees:
                    self._make_room(tree)
            return self._join(tree.trace_id, span_id, parent_id, span)

    def _join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_of(parent_id)
        return None if trace is None or tree is None else self._add(trace, tree, span_id, span)

    def _add(self, trace: Trace, tree: Tree, span_id: int, span: Any) -> Tree | None:
        if self._count >= self._max_spans and not (tree.quick and len(tree.spans) < tree.room):
            tree.overflowed = True
            return None
        trace.add(tree, span_id, span)
        if tree.twins:
            self._slow(tree)
        self._make_room(tree)
        return tree

    def _make_room(self, tree: Tree) -> None:
        """Count what a tree holds, and give a quick one that is full room for as much again, within reason."""
        room = len(tree.spans) + len(tree.twins)
        if tree.quick:
            if room < tree.room:
                return
            if room >= FRESH_LIMIT:
                self._arm()
            if not self.is_crowded():
                room = LEAST_ROOM if room == 1 else room + min(room, FRESH_LIMIT)
        self._count += room - tree.room
        tree.room = room

    def _slow(self, tree: Tree) -> None:
        """Close the quick way to a tree. What has arrived on it is still to be put in its place."""
        if tree.quick:
            tree.quick = False
            del self._quick[tree.trace_id]
            self._make_room(tree)

    def _absorb(self, tree: Tree, ids: Sequence[int]) -> None:
        """Put spans that have arrived in the places of the live ones."""
        spans, arrived = tree.spans, tree.arrived
        if tree.quick:  # nothing was taken out of it, so all in one go
            ended = {span_id: span for span_id in ids if (span := arrived.pop(span_id, None)) is not None}
            spans.update(ended)
            tree.fresh += ended.values()
            tree.ended += len(ended)
            return
        for span_id in ids:
            if span_id in spans and span_id in arrived:  # else it was taken out, or put in its place, meanwhile
                spans[span_id] = span = arrived.pop(span_id)
                tree.fresh.append(span)
                tree.ended += 1
        if tree.piecewise and ids:
            self._stirred[tree] = None

    def open(self, tree: Tree, span: Any) -> Tree | None:
        """Hold a new tree with ``span`` as its local root; a span that is here already joins its own tree again.

        None if too many spans are held.
        """
        with self._lock:
            trace = self._traces.get(tree.trace_id)
            held = trace.tree_of(tree.root_id) if trace is not None else None
            if trace is not None and held is not None:
                return self._add(trace, held, tree.root_id, span)
            if self._count >= self._max_spans:
                return None
            tree.order = self._order = self._order + 1
            tree.opened_at = tree.seen_at = self._clock()
            self._trees[tree] = None
            if trace is not None:
                for other in trace.held:
                    self._slow(other)
                trace.held[tree] = None
                return self._add(trace, tree, tree.root_id, span)
            self._traces[tree.trace_id] = Trace(tree)
            tree.spans[tree.root_id] = span
            if not tree.piecewise and not self._memory.knows(tree.trace_id):
                tree.quick = True
                self._quick[tree.trace_id] = tree
            self._make_room(tree)
            return tree

    def adopt(self, orphan: Tree, span: Any) -> Tree | None:
        """Add the root of a new tree, whose parent is not here, to the open tree of its trace that it belongs to.

        That is the one whose spans the decision above it was about, else any with a true or a remote root. None if
        there is none.
        """
        above = orphan.above
        with self._lock:
            trace = self._traces.get(orphan.trace_id)
            for tree in trace.held if trace is not None else ():
                fits = tree.standing in ("root", "remote") if above is None else tree.tree_id == above.run_id
                if trace is not None and fits:
                    tree.adopted[orphan.root_id] = orphan.standing
                    return self._add(trace, tree, orphan.root_id, span)
            return None

    def admit(self, own: Tree, parent_id: int | None, span: Any) -> bool:
        """Hold an ended span whose start was never seen, with its parent or else as the root of ``own``.

        False if too many spans are held.
        """
        trace_id, span_id = own.trace_id, own.root_id
        unseen = Unseen(span.start_time)
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is not None and any(span in (t.spans.get(span_id), t.arrived.get(span_id)) for t in trace.held):
                return True  # it came on two ways at once
            if parent_id is None or self.join(trace_id, span_id, parent_id, unseen) is None:
                self.open(own, unseen)
            return self.end(trace_id, span_id, span)

    def end(self, trace_id: int, span_id: int, span: Any) -> bool:
        """Put an ended span in the place of the live one. False if no tree holds it."""
        tree = self._quick.get(trace_id)
        if tree is not None and span_id != tree.root_id:
            held = tree.spans.get(span_id)
            if held is not None and held is not span:
                arrived = tree.arrived
                arrived[span_id] = span
                if not tree.quick:
                    return self._end_after_all(tree, span_id, span)
                if len(arrived) >= ARRIVED_LIMIT:
                    self._absorb_quick(tree)
                return True
        with self._lock:
            if tree is None or not tree.quick or span_id != tree.root_id:
                return self._end(trace_id, span_id, span)
            tree.spans[span_id] = span
            tree.ended += 1
            tree.fresh.append(span)
            self._note_end(tree, span_id)
            return True

    def _absorb_quick(self, tree: Tree) -> None:
        """Let go of live spans while they are young, before the garbage collector counts them among what stays."""
        if self._lock.acquire(blocking=False):
            try:
                if tree.quick:
                    self._absorb(tree, [*tree.arrived])
            finally:
                self._lock.release()

    def _end_after_all(self, tree: Tree, span_id: int, span: Any) -> bool:
        """End by the lock what arrived at a tree just when the quick way to it was closed, if nobody has seen it."""
        with self._lock:
            is_unseen = tree.arrived.pop(span_id, None) is not None
            return self._end(tree.trace_id, span_id, span) if is_unseen else True

    def _end(self, trace_id: int, span_id: int, span: Any) -> bool:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_that_ends(span_id, span)
        if trace is None or tree is None:
            return False
        if self._memory.awaited and self._belongs_to_decided(tree, span_id, span):
            return False
        if not end_in(tree, span_id, span, is_alone=not tree.twins and not trace.shared):
            return True  # the processor was added twice
        tree.ended += 1
        tree.fresh.append(span)
        if tree.root_ended_at is not None or tree.piecewise or span_id == tree.root_id:
            self._note_end(tree, span_id)
        elif len(tree.fresh) == FRESH_LIMIT:
            self._arm()
        return True

    def _belongs_to_decided(self, tree: Tree, span_id: int, span: Any) -> bool:
        """Say whether the span that ended is not the one of this tree but one of a decided run, with the same id."""
        is_known = self._memory.open_under(tree.trace_id, span_id) is not None
        return is_known and not is_open_in(tree, span_id, span)

    def _note_end(self, tree: Tree, span_id: int) -> None:
        tree.last_end_at = now = self._clock()
        if span_id == tree.root_id and tree.root_ended_at is None:
            tree.end_order = self._order = self._order + 1
            tree.root_ended_at = now
            self._ended[tree] = None
            if len(tree.arrived) <= ARRIVED_LIMIT:  # as a rule; if hooks could not get at the lock, they are very many
                self._absorb(tree, [*tree.arrived])
            self._slow(tree)
        if tree.piecewise:
            self._stirred[tree] = None
        if not self._armed:
            self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._work.notify_all()

    def is_crowded(self) -> bool:
        """Say whether so much is held that whoever settles it should hurry."""
        return self._count > self._max_spans // CROWDED

    def is_inherited(self, trace_id: int, span_id: int) -> bool:
        """Say whether the span was open in the process that this one was forked from."""
        return bool(self._inherited) and (trace_id, span_id) in self._inherited

    def decided(self, trace_id: int, span_id: int, start_ns: int | None) -> Decided | None:
        """Return the decision that this span was a member of, if it is remembered."""
        with self._lock:
            return self._memory.find(trace_id, span_id, start_ns)

    def decided_open(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision that this span was a member of, if it is remembered and the span is still open."""
        with self._lock:
            return self._memory.open_under(trace_id, span_id)

    def follow(self, trace_id: int, parent_id: int, span_id: int) -> bool:
        """Let a started span follow its parent, which is open and whose run was decided. False if there is none."""
        with self._lock:
            return self._memory.follow(trace_id, parent_id, span_id)

    def late_end(self, trace_id: int, span_id: int, span: Any) -> Decided | None:
        """Take a span that was still open at a decision; it will follow, unless that only let it go at a bound."""
        with self._lock:
            decided = self._memory.take_open(trace_id, span_id)
            if decided is None or decided.is_cut:
                return decided
            decided.keep((span,))
            if decided.ruling != "pending":
                self._late[decided] = None
                self._arm()
            return decided
