"""What the live trees are told by others than their spans: programs that have ended, and findings about them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from spangate._buffer.intake import Intake
from spangate._buffer.tree import Tree
from spangate._records import Exit, Finding

_MOST_ALIKE: Final = 16
"""So many findings with one code about one span are kept: whoever tells them may not come to an end."""


class Told(NamedTuple):
    """Exits, and findings with the id of the span that each is about."""

    exits: list[Exit]
    notes: list[tuple[int, Finding]]


class Hearing(Intake):
    """The same trees, as whoever starts programs in them sees them."""

    def tree_id_of(self, trace_id: int, span_id: int) -> str | None:
        """Return the id of the tree that holds a span, or of the one that it is bound to; None if none does."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            return None if tree is None else (tree.host or tree).tree_id

    def take_exit(self, row: Exit) -> None:
        """Keep an exit with the tree that holds its span. One whose run was decided before it ended belongs to none."""
        with self._lock:
            tree = self._tree_of(row.trace_id, row.span_id)
            if tree is not None:
                tree.exits.append(row)

    def take_note(self, trace_id: int, span_id: int, note: Finding) -> None:
        """Keep a finding with the tree that holds a span, of many with one code about one span the first few."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            if tree is not None:
                same = sum(1 for about, other in tree.notes if about == span_id and other.code == note.code)
                if same < _MOST_ALIKE:
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

    def _tree_of(self, trace_id: int, span_id: int) -> Tree | None:
        trace = self._traces.get(trace_id)
        return None if trace is None else trace.tree_of(span_id)
