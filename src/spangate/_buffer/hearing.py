"""What the live trees are told by others than their spans: exits of programs, what these recorded, and findings."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from spangate._buffer.held import FRESH_LIMIT
from spangate._buffer.intake import Intake
from spangate._buffer.received import Received, Reception
from spangate._buffer.tree import Decided, Tree
from spangate._records import Exit, Finding


class Told(NamedTuple):
    """Exits, and findings with the id of the span that each is about."""

    exits: list[Exit]
    notes: list[tuple[int, Finding]]


class Hearing(Intake):
    """The same trees, as whoever starts programs in them sees them."""

    def tree_id_of(self, trace_id: int, span_id: int) -> str | None:
        """Return the id of the tree that holds a span, None if none does."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            return None if tree is None else tree.tree_id

    def take_exit(self, row: Exit) -> None:
        """Keep an exit with the tree that holds its span. One whose run was decided before it ended belongs to none."""
        with self._lock:
            tree = self._tree_of(row.trace_id, row.span_id)
            if tree is not None:
                tree.exits.append(row)

    def take_note(self, trace_id: int, span_id: int, note: Finding) -> None:
        """Keep a finding with the tree that holds a span."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            if tree is not None:
                tree.notes.append((span_id, note))

    def take_told(self, tree: Tree, span_ids: Collection[int] | None = None) -> Told:
        """Take out of a tree what it was told of these spans, or of all: a tree may live for as long as the program."""
        with self._lock:
            told = Told(tree.exits, tree.notes)
            if span_ids is None or not (tree.exits or tree.notes):
                tree.exits, tree.notes = [], []
                return told
            tree.exits = [row for row in told.exits if row.span_id not in span_ids]
            tree.notes = [(span_id, note) for span_id, note in told.notes if span_id not in span_ids]
        return Told(
            [row for row in told.exits if row.span_id in span_ids],
            [(span_id, note) for span_id, note in told.notes if span_id in span_ids],
        )

    def holds(self, trace_id: int, span_id: int) -> bool:
        """Say whether a tree here holds a span."""
        return self.tree_id_of(trace_id, span_id) is not None

    def is_below_root(self, trace_id: int, span_id: int) -> bool:
        """Say whether a tree here holds a span that is not its local root."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            return tree is not None and span_id != tree.root_id

    def receive(self, trace_id: int, received: Received) -> Reception:
        """Keep what a program of a run has sent, which has its span in this trace, or has none and was forked.

        Spans go where their trace is: who knows its id was given its context. Any other trace is the program's own, and
        belongs to the run that started it.
        """
        with self._lock:
            elsewhere = None if received.trace_id == trace_id else self._main_tree(received.trace_id)
            tree = elsewhere or self._tree_of(trace_id, received.sender_id)
            if tree is None and not received.sender_id:
                tree = self._main_tree(trace_id)
            if tree is None:
                return self._receive_late(trace_id, received)
            if self._count + received.count > self._max_spans:
                tree.overflowed = True
                return "full"
            tree.received.append(received)
            tree.count_received(received.count, len(received.message))
            self._count += received.count
            if tree.piecewise:
                self._stirred[tree] = None
            if tree.piecewise or tree.root_ended_at is not None or tree.received_count >= FRESH_LIMIT:
                self._arm()
            return "taken"

    def _receive_late(self, trace_id: int, received: Received) -> Reception:
        elsewhere = None if received.trace_id == trace_id else self._memory.newest(received.trace_id)
        decided = elsewhere or self._memory.of_member(trace_id, received.sender_id)
        if decided is None:
            return "over"
        if self._count + received.count > self._max_spans:
            return "full"
        self._count += received.count
        self._received_late.append((decided, received))
        self._arm()
        return "taken"

    def take_received(self, tree: Tree) -> list[Received]:
        """Take what programs of a tree have sent since the last call. It counts as held."""
        with self._lock:
            received, tree.received = tree.received, []
            return received

    def take_received_late(self) -> list[tuple[Decided, Received]]:
        """Take what programs have sent after their run was decided, with the decision that it follows."""
        with self._lock:
            late, self._received_late = self._received_late, []
            self._count -= sum(received.count for _, received in late)
            return late

    def let_go_received(self, tree: Tree, count: int) -> None:
        """Count so many received spans of a tree as held no longer."""
        with self._lock:
            if count and tree in self._trees:
                self._count -= count
                tree.uncount_received(count)

    def _main_tree(self, trace_id: int) -> Tree | None:
        """Return the tree of a trace that what came from elsewhere belongs to: the first that starts it here."""
        trace = self._traces.get(trace_id)
        if trace is None:
            return None
        return next((tree for tree in trace.held if tree.standing in ("root", "remote")), None)

    def _tree_of(self, trace_id: int, span_id: int) -> Tree | None:
        trace = self._traces.get(trace_id)
        return None if trace is None else trace.tree_of(span_id)
