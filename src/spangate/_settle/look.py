"""Held trees read as records, with what is known of their spans from elsewhere."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spangate._adapter import record
from spangate._buffer import Buffer
from spangate._buffer.gather import notes_of, remembered, told_notes, unread
from spangate._buffer.trace import is_live
from spangate._buffer.tree import Decided, Glimpse, Tree
from spangate._dialects import classify
from spangate._forest import Part
from spangate._paced import paced, strides, take_apart
from spangate._records import Span
from spangate._run import Run
from spangate._sdk.unshared import told_apart
from spangate._settle.asked import put_stamps
from spangate._settle.heard import BY_START, connect, merged, records_of, ripe, together
from spangate._stamp import said_of, stamps_of


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What a tree held at one moment: records with their roles and their SDK spans, in start order.

    ``activity`` is the tree's, to tell whether it has changed. ``beside`` are trees in traces of their own that
    programs of this one have sent: their context did not reach them, or they ignored it. ``joined`` are looks at the
    trees that are bound to it.
    """

    spans: Sequence[Span]
    activity: int = 0
    beside: Sequence[Part] = ()
    joined: Sequence[tuple[Tree, Look]] = ()

    @property
    def all_spans(self) -> Sequence[Span]:
        """The spans of the tree and of those beside it or bound to it, the root first."""
        further = [part.spans for part in self.beside] + [its.all_spans for _, its in self.joined]
        if not further:
            return self.spans
        return [*self.spans[:1], *heapq.merge(self.spans[1:], *further, key=BY_START)]

    @property
    def ids(self) -> frozenset[int]:
        """The span ids of all."""
        return frozenset(span.span_id for span in self.spans)


def read(
    held: Iterable[Any], activity: int = 0, tree: Tree | None = None, rest: Callable[[], None] | None = None
) -> Look:
    """Read SDK spans that a container holds, live or ended.

    Those of a ``tree`` are read with what it knows of attributes that the SDK evicted since. ``rest`` is called after
    every few spans.
    """
    spans: list[Span] = []
    for stride in strides(held):
        for source, is_unshared in told_apart(stride):
            span = record(source, is_open=is_live(source), is_shared=not is_unshared)
            if span.dropped_attributes and tree is not None:
                _put_back(span, tree)
            classify(span)
            spans.append(span)
        if rest is not None:
            rest()
    return Look(spans, activity)


def _with_root(tree: Tree, look: Look) -> Look:
    """Put a root that has left already back in front. What joined the tree from elsewhere may have its parent here."""
    if tree.adopted:
        connect((span for span in look.spans if span.span_id in tree.adopted), look.spans)
    if tree.root is None:
        return look
    return Look([tree.root, *look.spans], look.activity)


def _with_heard(look: Look, tree: Tree, *, whole: bool) -> Look:
    """Put what programs have sent where it belongs; in a tree that is decided part by part only what is ripe."""
    heard = tree.heard if whole or not tree.piecewise else ripe(tree.heard, look.spans)
    if not heard:
        return look
    spans, beside = together(look.spans, heard)
    return Look(spans, look.activity, beside)


def _put_back(span: Span, tree: Tree) -> None:
    """Give a span what it said of itself at its start, and its stamps: these the gate exports, so they are no loss."""
    stamps = stamps_of(tree, span.span_id)
    evicted = {key: value for key, value in stamps.items() if key not in span.attributes}
    span.attributes = {**said_of(tree, span.span_id), **evicted, **span.attributes}
    span.dropped_attributes -= len(evicted)


class Looks:
    """Reads trees, and remembers what it read until the tree changes or is closed. Used by the worker alone.

    ``model`` is the one that is pinned where a request names none.
    """

    def __init__(self, buffer: Buffer, model: str | None = None) -> None:
        self._buffer = buffer
        self._model = model
        self._looks: dict[Tree, Look] = {}

    def at(self, tree: Tree, *, whole: bool = False) -> Look:
        """Read the tree, or return the last look if nothing has changed since. Its root comes first even if it left.

        ``whole`` looks are anew, and hold what programs that still run have sent, too.
        """
        look = self._looks.get(tree)
        if look is None or whole or look.activity != tree.activity:
            glimpse = self._buffer.glimpse(tree)
            self._hear(tree)  # after: none may be missed
            look = _with_heard(_with_root(tree, self._read(glimpse, tree)), tree, whole=whole)
            if tree.bound and not tree.piecewise:
                look = replace(look, joined=[(other, self.at(other)) for other in [*tree.bound]])
            self._looks[tree] = look
        return look

    def _read(self, glimpse: Glimpse, tree: Tree) -> Look:
        look = read(glimpse, glimpse.activity, tree, self._buffer.rest)
        self._buffer.hear_requests()  # after: each was sent before its span ended
        if tree.overheard or tree.unsettled:
            put_stamps(look.spans, tree, self._model)
        return look

    def read_requests(self) -> None:
        """Read the requests to models that were overheard, so that their bodies need not be kept."""
        for request in self._buffer.hear_requests():
            request.stamps()
            self._buffer.rest()

    def _hear(self, tree: Tree) -> None:
        """Read what programs have sent. What has come twice is held once."""
        received = self._buffer.take_received(tree)
        if received:
            before = len(tree.heard) + sum(part.count for part in received)
            tree.heard = merged(tree.heard, records_of(received, self._buffer.rest))
            self._buffer.let_go_received(tree, before - len(tree.heard))

    def forget(self, tree: Tree, gone: Collection[Span]) -> None:
        """Forget what was heard of spans that are decided."""
        if tree.heard:
            ids = {id(span) for span in gone}
            kept = [span for span in tree.heard if id(span) not in ids]
            self._buffer.let_go_received(tree, len(tree.heard) - len(kept))
            tree.heard = kept
            self._looks.pop(tree, None)

    def close(self, tree: Tree, look: Look, run_id: str) -> Decided | None:
        """Take the tree out of the buffer. None if something started or ended since ``look``: look again."""
        decided = remembered(tree, run_id, paced(look.spans, self._buffer.rest))
        joined = {other: remembered(other, run_id, its.spans) for other, its in look.joined}
        decided.joined = [*joined.values()]
        if not self._buffer.close(tree, decided, look.activity, joined):
            return None
        for one in (tree, *joined):
            self._looks.pop(one, None)
            one.take_apart(self._buffer.rest)
        return decided

    def seize(self, tree: Tree, run_id: str) -> tuple[Decided, Look] | None:
        """Take the tree out of the buffer whatever happens in it, and read it then. None if it is gone.

        What is bound to it comes along.
        """
        bound = [*tree.bound]
        decided = unread(tree, run_id)
        glimpse = self._buffer.seize(tree, decided)
        if glimpse is None:
            return None
        self._looks.pop(tree, None)
        self._hear(tree)
        look = _with_heard(self._read(glimpse, tree), tree, whole=True)
        tree.take_apart(self._buffer.rest)
        now_known = remembered(tree, run_id, paced(look.spans, self._buffer.rest))
        decided.span_ids, decided.start_ns, decided.end_ns = now_known.span_ids, now_known.start_ns, now_known.end_ns
        decided.programs, decided.root_end_ns = now_known.programs, now_known.root_end_ns
        seized = [(other, found) for other in bound if (found := self.seize(other, run_id)) is not None]
        decided.joined = [its for _, (its, _) in seized]
        return decided, replace(look, joined=[(other, its_look) for other, (_, its_look) in seized])

    def with_bound(self, run: Run, decided: Decided, bound: Iterable[Tree]) -> Run:
        """Return a run with what was bound to it, which is taken out as it stands and shares the ruling."""
        seized = [(other, *found) for other in bound if (found := self.seize(other, run.run_id)) is not None]
        decided.joined = [its for _, its, _ in seized]
        joined = [(other, its_look) for other, _, its_look in seized]
        return self.joined_by(replace(run, spans=Look(run.spans, joined=joined).all_spans), joined)

    def joined_by(self, run: Run, joined: Iterable[tuple[Tree, Look]]) -> Run:
        """Return a run with what is to be said of the trees that are a part of it, and what they were told."""
        notes, exits, claimed = [*run.notes], [*(run.exits or ())], [*run.claimed]
        for other, its in joined:
            told = self._buffer.take_told(other)
            notes += (*notes_of(other, its.spans[0], its.spans, run.trigger), *told_notes(told, its.spans))
            exits += told.exits
            claimed += (part.root for part in its.beside)
        return replace(run, notes=notes, exits=exits, claimed=claimed)

    def free(self, look: Look) -> None:
        """Let go of what was read, with rests: whoever lets go last frees it all."""
        take_apart(look.spans, self._buffer.rest)
        for _, its in look.joined:
            self.free(its)

    def keep(self, trees: Collection[Tree]) -> None:
        """Forget what was read of all other trees."""
        if self._looks:
            kept = set(trees)
            self._looks = {tree: look for tree, look in self._looks.items() if tree in kept}
