"""All that is held, the one lock, and the quick way past it.

State: ``_traces`` finds the tree of a span, ``_trees`` holds every tree in the order of its start, ``_ended`` the trees
whose root has ended, ``_stirred`` the piecewise trees in which something changed, ``_late`` the decisions that spans
ended after, ``_received_late`` what programs sent after theirs. ``_opened`` finds by run id the tree and the span of a
run that the program has opened. It is read and written under ``_lock``. ``_count`` is how many spans there is room
given to, ``_unread`` the bytes of what was sent and nobody has read, ``_record_weight`` those of the log records, which
``_record_number`` counts; ``_dropped`` are the records of trees that were dropped. ``_armed`` says that the worker will
look by itself within ``settle_s``, so that an ending span need not wake it. ``_sent`` are requests to models, about
``_sent_size`` bytes of them, that threads have put there without the lock.

Most spans take a quick way without the lock, which the hooks go by themselves (:mod:`spangate._quick_hooks`). ``quick``
finds by trace id the trees in which a start or an end needs no thought: alone in a trace of which no decision is
remembered, not piecewise, no id there twice, the root open. A start there is one ``setdefault`` on ``Tree.spans``, an
end one item in ``Tree.arrived``, which whoever holds the lock puts in its place. Either step is atomic in CPython, and
``Tree.quick`` is read after it: it is withdrawn before anything is decided about a tree, so that a hook which comes too
late for that knows it, and takes the lock.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from spangate._buffer.kept import Kept
from spangate._buffer.memory import Memory
from spangate._buffer.received import Received
from spangate._buffer.trace import Trace, is_live
from spangate._buffer.tree import Decided, Tree
from spangate._fingerprint.overheard import Sent

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


def _leave(_spans: Sequence[Any]) -> None:
    """Leave spans as they are."""


class Held:
    """All trees that are held, and a bounded memory of those that were decided.

    ``clock`` gives monotonic seconds. When ``max_spans`` are held, whoever settles them has fallen behind or hangs; no
    further ones are taken in then, and the trees that they would have joined are marked. ``rest`` is what whoever
    settles them calls between two steps of long work; ``pace`` makes it of a question whether there is time for a rest.
    ``lighten`` is done with ended spans when they are put in their places, outside the lock.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        max_spans: int = sys.maxsize,
        pace: Callable[[Question], Rest] = _restless,
        lighten: Callable[[Sequence[Any]], None] = _leave,
    ) -> None:
        self._clock = clock
        self._max_spans = max_spans
        self.rest = pace(self.is_crowded)
        self._lighten = lighten
        self._is_shut = False
        self.quick: dict[int, Tree] = {}  # the hooks keep hold of this one
        self._reset(frozenset())

    def _reset(self, inherited: frozenset[tuple[int, int]]) -> None:
        self._lock = threading.RLock()  # a finalizer or a signal handler may end a span while this thread holds it
        self._work = threading.Condition(self._lock)
        self._traces: dict[int, Trace] = {}
        self.quick.clear()
        self._trees: dict[Tree, None] = {}
        self._ended: dict[Tree, None] = {}
        self._stirred: dict[Tree, None] = {}
        self._late: dict[Decided, None] = {}
        self._received_late: list[tuple[Decided, Received]] = []
        self._opened: dict[str, tuple[Tree, int]] = {}
        self._count = self._unread = self._record_weight = 0
        self._record_number = 0
        self._dropped: list[Kept] = []
        self._sent: deque[Sent] = deque()
        self._sent_size = 0
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

    def is_crowded(self) -> bool:
        """Say whether so much is held that whoever settles it should hurry."""
        return self._count > self._max_spans // CROWDED

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
        """Close the quick way to a tree, and put what has arrived on it in its place, unless that is very much."""
        if tree.quick:
            tree.quick = False
            del self.quick[tree.trace_id]
            if len(tree.arrived) <= ARRIVED_LIMIT:
                ended = tree.arrived.copy()  # a hook that comes too late may still write to the other
                self._place(tree, ended)
                tree.placed, tree.arrived = [*ended], {}
            self._make_room(tree)

    def _place(self, tree: Tree, ended: Mapping[int, Any]) -> None:
        if tree.ended:  # a span that ends twice may stand in its place by now
            ended = {span_id: span for span_id, span in ended.items() if tree.spans.get(span_id) is not span}
        tree.spans.update(ended)
        tree.fresh += ended.values()
        count = len(ended)  # apart: what a signal handler ends after the call must not be forgotten
        tree.ended += count

    def _absorb(self, tree: Tree, ids: Sequence[int]) -> None:
        """Put spans that have arrived in the places of the live ones."""
        spans, arrived = tree.spans, tree.arrived
        if tree.quick:  # nothing was taken out of it, so all in one go
            ended = {span_id: span for span_id in ids if (span := arrived.pop(span_id, None)) is not None}
            try:
                self._place(tree, ended)
            except BaseException:  # the stack of the program may be full
                arrived.update(ended)
                raise
            return
        for span_id in ids:
            if span_id in spans and span_id in arrived:  # else it was taken out, or put in its place, meanwhile
                span = arrived.pop(span_id)
                if spans[span_id] is not span:  # it may come twice
                    spans[span_id] = span
                    tree.fresh.append(span)
                    tree.ended += 1
        if tree.piecewise and ids:
            self._stirred[tree] = None

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._work.notify_all()
