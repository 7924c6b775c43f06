"""What the hooks do with the live trees: spans are taken in as they start, and replaced as they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spangate._buffer.held import FRESH_LIMIT, Held
from spangate._buffer.trace import Trace, end_in, is_open_in
from spangate._buffer.tree import Decided, Tree, Unseen


class Intake(Held):
    """The trees as threads that record spans see them.

    What ends in ``_after_all`` is for a span that took the quick way just when it was closed.
    """

    def join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        """Add a started span to the tree that holds its parent, and return that tree, if one here does."""
        with self._lock:
            return self._join(trace_id, span_id, parent_id, span)

    def join_after_all(self, tree: Tree, span_id: int, parent_id: int, span: Any) -> Tree | None:
        """Join by the lock what stands among the spans of a tree already."""
        with self._lock:
            is_held, stands = tree in self._trees, tree.spans.get(span_id) is span
            if is_held and stands and self._may_stay(tree, parent_id):
                self._make_room(tree)
                return tree  # where it stands: somebody may be walking through the tree
            if not (is_held and stands) and self._memory.open_under(tree.trace_id, span_id) is not None:
                return tree  # whoever decided the tree has seen it
            if stands:
                tree.spans.pop(span_id, None)  # whoever settles the tree may be taking it apart
                if is_held:
                    self._make_room(tree)
            return self._join(tree.trace_id, span_id, parent_id, span)

    def _may_stay(self, tree: Tree, parent_id: int) -> bool:
        """Say whether a span that stands in a tree already needs nothing but to be counted."""
        is_alone = len(self._traces[tree.trace_id].held) == 1
        return is_alone and parent_id in tree.spans and self._count < self._max_spans

    def _join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_of(parent_id)
        return None if trace is None or tree is None else self._add(trace, tree, span_id, span)

    def _add(self, trace: Trace, tree: Tree, span_id: int, span: Any) -> Tree | None:
        if self._count >= self._max_spans and not (tree.quick and len(tree.spans) < tree.room):
            tree.overflowed = True
            return None
        trace.add(tree, span_id, span)
        if tree.twins:
            self._slow(tree)
        self._make_room(tree)
        return tree

    def open(self, tree: Tree, span: Any) -> Tree | None:
        """Hold a new tree with ``span`` as its local root; a span that is here already joins its own tree again.

        None if too many spans are held.
        """
        with self._lock:
            trace = self._traces.get(tree.trace_id)
            held = trace.tree_of(tree.root_id) if trace is not None else None
            if trace is not None and held is not None:
                return self._add(trace, held, tree.root_id, span)
            if self._count >= self._max_spans or self._is_shut:
                return None
            tree.order = self._order = self._order + 1
            tree.opened_at = tree.seen_at = self._clock()
            self._trees[tree] = None
            if trace is not None:
                for other in trace.held:
                    self._slow(other)
                trace.held[tree] = None
                return self._add(trace, tree, tree.root_id, span)
            self._traces[tree.trace_id] = Trace(tree)
            tree.spans[tree.root_id] = span
            if not tree.piecewise and not self._memory.knows(tree.trace_id):
                tree.quick = True
                self.quick[tree.trace_id] = tree
            self._make_room(tree)
            return tree

    def adopt(self, orphan: Tree, span: Any) -> Tree | None:
        """Add the root of a new tree, whose parent is not here, to the open tree of its trace that it belongs to.

        That is the one whose spans the decision above it was about, else any with a true or a remote root. None if
        there is none.
        """
        above = orphan.above
        with self._lock:
            trace = self._traces.get(orphan.trace_id)
            for tree in trace.held if trace is not None else ():
                fits = tree.standing in ("root", "remote") if above is None else tree.tree_id == above.run_id
                if trace is not None and fits:
                    tree.adopted[orphan.root_id] = orphan.standing
                    return self._add(trace, tree, orphan.root_id, span)
            return None

    def admit(self, own: Tree, parent_id: int | None, span: Any) -> bool:
        """Hold an ended span whose start was never seen, with its parent or else as the root of ``own``.

        False if too many spans are held.
        """
        trace_id, span_id = own.trace_id, own.root_id
        unseen = Unseen(span.start_time)
        self._lighten((span,))
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is not None and any(span in (t.spans.get(span_id), t.arrived.get(span_id)) for t in trace.held):
                return True  # it came on two ways at once
            if parent_id is None or self.join(trace_id, span_id, parent_id, unseen) is None:
                self.open(own, unseen)
            return self._end(trace_id, span_id, span)

    def end(self, trace_id: int, span_id: int, span: Any) -> bool:
        """Put an ended span in the place of the live one. False if no tree holds it."""
        tree = self.quick.get(trace_id)
        self._lighten((span,) if tree is None else [span, *tree.arrived.values()])
        with self._lock:
            return self._end(trace_id, span_id, span)

    def end_after_all(self, tree: Tree, arrived: dict[int, Any], span_id: int, span: Any) -> bool:
        """End by the lock what a hook has put into ``arrived``, if nobody has seen it. False if no tree holds it."""
        with self._lock:
            is_unseen = arrived.pop(span_id, None) is not None
            if arrived is not tree.arrived and span_id in tree.placed:
                is_unseen = False
            return self._end(tree.trace_id, span_id, span) if is_unseen else True

    def absorb_quick(self, tree: Tree) -> None:
        """Let go of live spans while they are young, before the garbage collector counts them among what stays."""
        ended: Sequence[Any] = ()
        if self._lock.acquire(blocking=False):
            try:
                if tree.quick:
                    ended = [*tree.arrived.values()]
                    self._absorb(tree, [*tree.arrived])
            finally:
                self._lock.release()
        self._lighten(ended)

    def _end(self, trace_id: int, span_id: int, span: Any) -> bool:
        tree = self.quick.get(trace_id)
        if tree is not None and span_id == tree.root_id:
            tree.spans[span_id] = span
            self._note_end(tree, span_id)
            tree.ended += 1
            tree.fresh.append(span)
            return True
        return self._end_in_any(trace_id, span_id, span)

    def _end_in_any(self, trace_id: int, span_id: int, span: Any) -> bool:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_that_ends(span_id, span)
        if trace is None or tree is None:
            return False
        if self._memory.awaited and self._belongs_to_decided(tree, span_id, span):
            return False
        if not end_in(tree, span_id, span, is_alone=not tree.twins and not trace.shared):
            return True  # the processor was added twice
        tree.ended += 1
        tree.fresh.append(span)
        if tree.root_ended_at is not None or tree.piecewise or span_id == tree.root_id:
            self._note_end(tree, span_id)
        elif len(tree.fresh) == FRESH_LIMIT:
            self._arm()
        return True

    def _belongs_to_decided(self, tree: Tree, span_id: int, span: Any) -> bool:
        """Say whether the span that ended is not the one of this tree but one of a decided run, with the same id."""
        is_known = self._memory.open_under(tree.trace_id, span_id) is not None
        return is_known and not is_open_in(tree, span_id, span)

    def _note_end(self, tree: Tree, span_id: int) -> None:
        tree.last_end_at = now = self._clock()
        if span_id == tree.root_id and tree.root_ended_at is None:
            tree.end_order = self._order = self._order + 1
            tree.root_ended_at = now
            if tree.host is None:
                self._ended[tree] = None
            self._slow(tree)
        if tree.piecewise:
            self._stirred[tree] = None
        if not self._armed:
            self._arm()

    def is_inherited(self, trace_id: int, span_id: int) -> bool:
        """Say whether the span was open in the process that this one was forked from."""
        return bool(self._inherited) and (trace_id, span_id) in self._inherited

    def is_inherited_trace(self, trace_id: int) -> bool:
        """Say whether any span of the trace was open in the process that this one was forked from."""
        return any(inherited == trace_id for inherited, _ in self._inherited)

    def decided(self, trace_id: int, span_id: int, start_ns: int | None) -> Decided | None:
        """Return the decision that this span was a member of, if it is remembered."""
        with self._lock:
            return self._memory.find(trace_id, span_id, start_ns)

    def decided_open(self, trace_id: int, span_id: int) -> Decided | None:
        """Return the decision that this span was a member of, if it is remembered and the span is still open."""
        with self._lock:
            return self._memory.open_under(trace_id, span_id)

    def follow(self, trace_id: int, parent_id: int, span_id: int) -> bool:
        """Let a started span follow its parent, which is open and whose run was decided. False if there is none."""
        with self._lock:
            return self._memory.follow(trace_id, parent_id, span_id)

    def late_end(self, trace_id: int, span_id: int, span: Any) -> Decided | None:
        """Take a span that was still open at a decision; it will follow, unless that only let it go at a bound."""
        with self._lock:
            decided = self._memory.take_open(trace_id, span_id)
            if decided is None or decided.is_cut:
                return decided
            decided.keep((span,))
            if decided.ruling != "pending":
                self._late[decided] = None
                self._arm()
            return decided
