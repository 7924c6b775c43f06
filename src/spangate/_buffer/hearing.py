"""What the live trees are told by others than their spans: programs that have ended, and findings about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from spangate._buffer.intake import Intake
from spangate._buffer.tree import Tree
from spangate._fingerprint import Stamps
from spangate._fingerprint.overheard import CROWDED, Overheard
from spangate._records import Exit, Finding

_MOST_ALIKE: Final = 16
"""So many findings with one code about one span are kept: whoever tells them may not come to an end."""


_MOST_REQUESTS: Final = 1 << 14
"""So many requests to models are kept of a tree, each of a kilobyte or so once it is read."""
_MANY_BYTES: Final = 4 << 20
"""So many bytes of bodies wake the worker."""
_MOST_BYTES: Final = 64 << 20
"""Of so many nothing more is kept until it has read them."""


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
        """Keep a finding with the tree that holds a span, of many with one code about one span the first few."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            if tree is not None:
                same = sum(1 for about, other in tree.notes if about == span_id and other.code == note.code)
                if same < _MOST_ALIKE:
                    tree.notes.append((span_id, note))

    def take_request(self, request: Overheard) -> None:
        """Keep a request to a model with the tree that holds the span that it was sent in.

        Its body is read by the worker: soon if much waits, else when the run is over.
        """
        with self._lock:
            tree = self._tree_of(request.trace_id, request.span_id)
            if tree is None or len(tree.overheard) >= _MOST_REQUESTS:
                return
            tree.overheard.append(request)
            if self._bodies_size > _MOST_BYTES:
                request.leave_unread(CROWDED)
            elif request.weight:
                self._bodies.append(request)
                self._bodies_size += request.weight
                if self._bodies_size > _MANY_BYTES:
                    self._arm()

    def take_bodies(self) -> Sequence[Overheard]:
        """Take the requests whose bodies nobody has read."""
        with self._lock:
            bodies, self._bodies, self._bodies_size = self._bodies, [], 0
            return bodies

    def take_stamps(self, trace_id: int, span_id: int, stamps: Stamps) -> None:
        """Remember what was written on a live span, or would have been if there were room for it."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            if tree is not None:
                tree.stamps[span_id] = stamps
                tree.unsettled.setdefault(span_id, None)

    def watch_starts(self, trace_id: int, span_id: int) -> bool:
        """Close the quick way to the tree that holds a span, to all if none does: what starts is to be looked at."""
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            for quick in [*self.quick.values()] if tree is None else [tree]:
                self._slow(quick)
            return not self._is_shut

    def take_told(self, tree: Tree, span_ids: Collection[int] | None = None) -> Told:
        """Take out of a tree what it was told of these spans, or of all: a tree may live for as long as the program."""
        with self._lock:
            told = Told(tree.exits, tree.notes)
            if tree.overheard:
                kept = () if span_ids is None else [one for one in tree.overheard if one.span_id not in span_ids]
                tree.overheard = [*kept]
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
