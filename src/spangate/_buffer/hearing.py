"""What the live trees are told by others than their spans: programs that have ended, and findings about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from spangate._buffer.intake import Intake
from spangate._buffer.tree import Tree
from spangate._fingerprint import Stamps
from spangate._fingerprint.overheard import CROWDED, Overheard, Sent
from spangate._records import Exit, Finding

_MOST_ALIKE: Final = 16
"""So many findings with one code about one span are kept: whoever tells them may not come to an end."""


_MOST_REQUESTS: Final = 1 << 14
"""So many requests to models are kept of a tree, each of a kilobyte or so once it is read."""
_REQUEST_BYTES: Final = 512
"""What a request takes beside its body."""
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

    def take_request(self, request: Sent) -> None:
        """Take in a request to a model, in as few steps as can be: whoever sends it waits.

        Much that waits wakes the worker; what it cannot keep up with is let go.
        """
        if self._sent_size > _MANY_BYTES:
            with self._lock:
                self._arm()
            if self._sent_size > _MOST_BYTES:
                request = request[0], request[1], None, CROWDED
        self._sent.append(request)
        self._sent_size += _REQUEST_BYTES + len(request[2] or b"")  # two threads at once may spoil it a little

    def hear_requests(self) -> Sequence[Overheard]:
        """Put the requests that were taken in with the trees that hold the spans that they were sent in; return these.

        One whose span is not here is dropped.
        """
        heard: list[Overheard] = []
        if not self._sent:
            return heard
        with self._lock:
            self._sent_size = 0
            for _ in range(len(self._sent)):
                sent = self._sent.popleft()
                tree = self._tree_of(sent[0][0], sent[0][1])
                if tree is not None and len(tree.overheard) < _MOST_REQUESTS:
                    heard.append(Overheard(*sent))
                    tree.overheard.append(heard[-1])
        return heard

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
                kept = () if span_ids is None else [one for one in tree.overheard if one.context[1] not in span_ids]
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
