"""What programs of the live trees have sent, kept with the tree that it belongs to or the decision that it follows.

It is bounded in spans, as everything that is held, and in bytes until it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from spangate._buffer.held import FRESH_LIMIT
from spangate._buffer.opening import Opening
from spangate._buffer.received import Received, Reception
from spangate._buffer.tree import SPAN_OVERHEAD, Decided, Tree


class Receiving(Opening):
    """The same trees, as whoever takes in what programs send sees them. Where a span is 0, nobody knows which it is."""

    def holds(self, trace_id: int, span_id: int) -> bool:
        """Say whether a tree here holds a span."""
        return self.tree_id_of(trace_id, span_id) is not None

    def is_below_root(self, trace_id: int, span_id: int) -> bool:
        """Say whether a tree here holds a span that is not its local root, or one whose run is elsewhere."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            return tree is not None and (tree.is_member or tree.host is not None or span_id != tree.root_id)

    def is_member(self, trace_id: int, span_id: int) -> bool:
        """Say whether a span is in a tree of a run that another process holds."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            return tree is not None and tree.is_member

    def receive(self, trace_id: int, parts: Sequence[Received]) -> Reception:
        """Keep what a program of a run has sent, which has its span in this trace: all of it, or nothing for now.

        Spans go where their trace is: who knows its id was given its context. Any other trace is the program's own, and
        belongs to the run that started it. What belongs to a run that nobody remembers is left out.
        """
        with self._lock:
            homes = [(part, self._home_of(trace_id, part)) for part in parts]
            known = [(part, home) for part, home in homes if home is not None]
            if parts and not known:
                return Reception("over", 0)
            if not self._has_room_for([part for part, _ in known]):
                for tree in (home for _, home in known if isinstance(home, Tree)):
                    tree.overflowed = True
                return Reception("full", 0)
            for part, home in known:
                self._keep(part, home)
            return Reception("taken", sum(part.count for part, _ in known))

    def _home_of(self, trace_id: int, part: Received) -> Tree | Decided | None:
        if part.trace_id != trace_id:
            elsewhere = self._main_tree(part.trace_id) or self._memory.newest(part.trace_id)
            if elsewhere is not None:
                return elsewhere
        tree = self._tree_of(trace_id, part.sender_id)
        if tree is not None:
            return tree
        decided = self._memory.of_program(trace_id, part.sender_id)
        return decided or self._main_tree(trace_id) or self._memory.newest(trace_id)

    def _has_room_for(self, parts: Iterable[Received]) -> bool:
        spans = self._count + sum(part.count for part in parts)
        size = self._unread + sum(len(part.message) for part in parts)
        return not self._is_shut and spans <= self._max_spans and size <= self._max_spans * SPAN_OVERHEAD

    def _keep(self, part: Received, home: Tree | Decided) -> None:
        self._count += part.count
        self._unread += len(part.message)
        if isinstance(home, Decided):
            self._received_late.append((home, part))
            self._arm()
            return
        home.received.append(part)
        home.count_received(part.count, len(part.message))
        if home.piecewise:
            self._stirred[home] = None
        if home.piecewise or home.root_ended_at is not None or home.received_count >= FRESH_LIMIT:
            self._arm()

    def take_received(self, tree: Tree) -> list[Received]:
        """Take what programs of a tree have sent since the last call. It counts as held."""
        with self._lock:
            received, tree.received = tree.received, []
            self._unread -= sum(len(part.message) for part in received)
            return received

    def take_received_late(self) -> list[tuple[Decided, Received]]:
        """Take what programs have sent after their run was decided, with the decision that it follows."""
        with self._lock:
            late, self._received_late = self._received_late, []
            self._count -= sum(part.count for _, part in late)
            self._unread -= sum(len(part.message) for _, part in late)
            return late

    def let_go_received(self, tree: Tree, count: int) -> None:
        """Count so many received spans of a tree as held no longer."""
        with self._lock:
            if count and tree in self._trees:
                self._count -= count
                tree.uncount_received(count)

    def _follow(self, tree: Tree, senders: Collection[int], decided: Decided) -> None:
        """Have what these programs of a tree have sent, and nobody has read, follow the decision about them."""
        known = {*senders} if tree.received else ()
        for part in [part for part in tree.received if part.sender_id in known]:
            tree.received.remove(part)
            tree.uncount_received(part.count)
            self._received_late.append((decided, part))

    def _main_tree(self, trace_id: int) -> Tree | None:
        """Return the tree of a trace that what came from elsewhere belongs to: the first that starts it here."""
        trace = self._traces.get(trace_id)
        if trace is None:
            return None
        return next((tree for tree in trace.held if tree.standing in ("root", "remote")), None)
