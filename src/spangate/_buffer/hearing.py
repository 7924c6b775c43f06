"""What the live trees are told by others than their spans: programs that have ended, and findings about them."""

from __future__ import annotations

from spangate._buffer.intake import Intake
from spangate._buffer.tree import Tree
from spangate._records import Exit, Finding


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

    def _tree_of(self, trace_id: int, span_id: int) -> Tree | None:
        trace = self._traces.get(trace_id)
        return None if trace is None else trace.tree_of(span_id)
