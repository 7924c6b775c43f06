"""The open trees of one trace id: which of them holds a span, also where ids repeat."""

from __future__ import annotations

from typing import Any

from spangate._buffer.tree import Tree


class Trace:
    """The trees of ``trace_id``, all of them in ``held``.

    ``main`` is the first of them, while it is here; ``others`` maps span ids to the rest. ``shared`` lists the trees of
    an id that several hold: programs seed their random numbers, and ids repeat.
    """

    __slots__ = ("held", "main", "others", "shared", "trace_id")

    def __init__(self, main: Tree) -> None:
        self.trace_id = main.trace_id
        self.main: Tree | None = main
        self.held: dict[Tree, None] = {main: None}
        self.others: dict[int, Tree] = {}
        self.shared: dict[int, list[Tree]] = {}

    def tree_of(self, span_id: int) -> Tree | None:
        """Return the tree that holds the span; of several the first."""
        if self.main is not None and span_id in self.main.spans:
            return self.main
        return self.others.get(span_id)

    def tree_that_ends(self, span_id: int, ended: Any) -> Tree | None:
        """Return the tree in which this span is still open, the first if none is."""
        for tree in self.shared.get(span_id, ()):
            if is_open_in(tree, span_id, ended):
                return tree
        return self.tree_of(span_id)

    def add(self, tree: Tree, span_id: int, span: Any) -> None:
        """Hold a live span in ``tree``; if that very span is there already, note that it came again."""
        if span_id not in tree.spans:
            if tree is not self.main or len(self.held) > 1:
                self._index(tree, span_id)
            tree.spans[span_id] = span
        elif tree.spans[span_id] is span:
            tree.is_doubled = True
        else:
            tree.twins.append((span_id, span))

    def _index(self, tree: Tree, span_id: int) -> None:
        holder = self.tree_of(span_id) if len(self.held) > 1 else None
        if holder is not None:
            self.shared.setdefault(span_id, [holder]).append(tree)
        elif tree is not self.main:
            self.others[span_id] = tree

    def drop(self, tree: Tree, span_id: int) -> None:
        """Forget that ``tree`` holds the span."""
        if self.others.get(span_id) is tree:
            del self.others[span_id]
        if span_id in self.shared:
            rest = [other for other in self.shared.pop(span_id) if other is not tree]
            if rest[0] is not self.main:
                self.others[span_id] = rest[0]
            if len(rest) > 1:
                self.shared[span_id] = rest

    def drop_tree(self, tree: Tree) -> bool:
        """Forget a tree. Returns whether none is left."""
        if self.main is tree:
            self.main = None
        for span_id in [*tree.spans] if len(self.held) > 1 else ():
            self.drop(tree, span_id)
        del self.held[tree]
        return not self.held


def same_id(tree: Tree, span_id: int) -> list[Any]:
    """List the spans of a tree that have this id."""
    return [tree.spans[span_id], *(twin for twin_id, twin in tree.twins if twin_id == span_id)]


def is_open_in(tree: Tree, span_id: int, ended: Any) -> bool:
    """Say whether the live span that ``ended`` came from is in the tree; start times tell spans with one id apart."""
    return any(is_live(span) and span.start_time == ended.start_time for span in same_id(tree, span_id))


def end_in(tree: Tree, span_id: int, ended: Any, *, is_alone: bool) -> bool:
    """Replace the live span that ended, one of several with its id unless it ``is_alone``. False if it is not there."""
    first = tree.spans[span_id]
    if is_alone:
        tree.spans[span_id] = ended
        return first is not ended
    if is_live(first) and first.start_time == ended.start_time:
        tree.spans[span_id] = ended
        return True
    for number, (twin_id, twin) in enumerate(tree.twins):
        if twin_id == span_id and is_live(twin) and twin.start_time == ended.start_time:
            tree.twins[number] = (span_id, ended)
            return True
    return False


def take_one(tree: Tree, span_id: int, seen: Any) -> Any | None:
    """Take out of a tree the span that was seen, or the one that it has become since. None if it is not there."""
    same = same_id(tree, span_id) if span_id in tree.spans else []
    taken = next((span for span in same if span is seen or span.start_time == seen.start_time), None)
    rest = [span for span in same if span is not taken]
    if rest:
        tree.spans[span_id] = rest[0]
        tree.twins = [twin for twin in tree.twins if twin[0] != span_id] + [(span_id, span) for span in rest[1:]]
    else:
        tree.spans.pop(span_id, None)
    return taken


def is_live(span: Any) -> bool:
    """Say whether a held span has yet to end: only a live one can be ended, not what ``on_end`` was given."""
    return hasattr(span, "end")
