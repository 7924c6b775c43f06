"""Which trees of spans live when, and with which look at the working tree each of them begins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Final

from spangate._buffer import Buffer
from spangate._buffer.tree import Tree
from spangate._hosts import looks_first
from spangate._run import Run
from spangate._settle.place import Placer
from spangate._worktree import Look, Looker

_PATIENCE_S: Final = 10.0
"""How long a tool of ours waits for the look that its run begins with."""
_MANY: Final = 256
"""So many trees are watched before those that are gone are forgotten."""
_NOW: Final = 0.5
"""Between the moment at which the newest tree has begun, and the next."""


class Watch:
    """A tree that may be a run: the last look before it began, the first one after, and the spans there were then.

    ``began`` is when it did, in seconds of the clock that only goes forward; ``present`` is None until the look is
    over. ``judged`` counts the runs in it that were.
    """

    __slots__ = ("baseline", "before", "began", "is_gone", "judged", "present", "tree")

    def __init__(self, tree: Tree, before: Look | None) -> None:
        self.tree = tree
        self.before = before
        self.began = time.monotonic()
        self.baseline = Look()
        self.present: Sequence[int] | None = None
        self.judged = 0
        self.is_gone = False


class Watches:
    """Has the working tree looked at whenever a tree of spans begins. Any thread may call it.

    Moments are numbered as in :class:`spangate._buffer.Buffer`: starts and ends of local roots.
    """

    def __init__(self, buffer: Buffer, place: str | PurePath, *, with_ignored: bool) -> None:
        self._buffer = buffer
        self.looker = Looker(place, with_ignored=with_ignored, told=self._told)
        self.reset()
        self.looker.ask()
        looks_first(self.await_look)

    def reset(self) -> None:
        """Watch nothing: what a forked child starts with."""
        self._lock = threading.RLock()  # a signal handler may begin a run where this thread begins one
        self.looker.reset()
        self._watches: dict[Tree, Watch] = {}
        self._last_end = 0.0
        self._newest = 0

    def learn_from(self, placer: Placer) -> None:
        """Learn of each tree that begins. Nobody else's placer has one step more for it."""
        place: Callable[..., Tree | None] = placer.place

        def place_and_tell(span: Any, context: Any, *others: Any) -> Tree | None:
            tree = place(span, context, *others)
            if tree is not None and tree.root_id == context.span_id:
                self._begin(tree)
            return tree

        vars(placer)["place"] = place_and_tell

    def _begin(self, tree: Tree) -> None:
        with self._lock:
            if len(self._watches) >= _MANY:
                self._forget_gone()
            watch = self._watches[tree] = Watch(tree, self.looker.latest)
            self._newest = max(self._newest, tree.order)
            watch.baseline = self.looker.ask()

    def _forget_gone(self) -> None:
        """Forget trees that were gone the last time as well: one that has just gone may be about to be judged."""
        held = {*self._buffer.held()}
        for tree, watch in [*self._watches.items()]:
            if tree not in held:
                if watch.is_gone:
                    del self._watches[tree]
                watch.is_gone = True

    def _told(self, look: Look) -> None:
        with self._lock:
            for watch in self._watches.values():
                if watch.baseline is look:
                    watch.present = [*watch.tree.spans]

    def await_look(self, trace_id: int) -> None:
        """Wait for the looks that the trees of a trace begin with."""
        with self._lock:
            wanted = [watch.baseline for watch in self._watches.values() if watch.tree.trace_id == trace_id]
        for look in wanted:
            self.looker.wait(look, _PATIENCE_S)

    def close(self, run: Run) -> tuple[Watch, float, bool] | None:
        """Return what is known of the tree that a run is, or a part of, with the moment of its end: for a part, now.

        The last says whether a run that was judged before ended later than this one began. None: nothing is known.
        """
        with self._lock:
            watch = self._of_run(run)
            if watch is None:
                return None
            watch.judged += 1
            end = self._newest + _NOW
            if not watch.tree.piecewise:
                del self._watches[watch.tree]
                end = watch.tree.end_order or end
            overlaps, self._last_end = self._last_end > watch.tree.order, max(self._last_end, end)
            return watch, end, overlaps

    def _of_run(self, run: Run) -> Watch | None:
        """Find a run's tree by its id, which runs that a program has opened below others' spans do not have."""
        tree_id = run.run_id.partition(".")[0]
        near = [watch for watch in self._watches.values() if watch.tree.trace_id == run.root.trace_id]
        found = next((watch for watch in near if watch.tree.tree_id == tree_id), None)
        return near[0] if found is None and len(near) == 1 else found

    def others(self, watch: Watch) -> list[Watch]:
        """Return all but one."""
        with self._lock:
            return [other for other in self._watches.values() if other is not watch]

    def after(self, moment: float) -> list[Watch]:
        """Return the trees that have begun after a moment, in that order."""
        with self._lock:
            found = [other for other in self._watches.values() if other.tree.order > moment]
        return sorted(found, key=lambda other: other.tree.order)
