"""Spans of the runs still open. Holds the only lock and never calls out while holding it.

State: ``_traces`` finds the tree of a span, ``_trees`` holds every tree in the order of its start, ``_ended`` the trees
whose root has ended, ``_stirred`` the piecewise trees in which something changed, ``_late`` the decisions that spans
ended after. ``_plain`` finds by trace id the trees in which a start or an end needs no thought: alone in a trace of
which no decision is remembered, not piecewise, no id there twice, the root open. Everything is read and written under
``_lock``. ``_count`` is how many spans are held. ``_armed`` says that the worker will look by itself within
``settle_s``, so that an ending span need not wake it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import repeat, takewhile
from typing import Any

from spangate._buffer.memory import Memory
from spangate._buffer.trace import Trace, end_in, is_live, is_open_in, take_one
from spangate._buffer.tree import Decided, Glimpse, Ruling, Tree, Unseen

FRESH_LIMIT = 4096
"""So many unmeasured spans of one tree wake the worker, though its root has not ended."""

CROWDED = 2
"""What part of all spans that there is room for makes the buffer crowded."""


class Buffer:
    """All trees that are held, and a bounded memory of those that were decided.

    ``clock`` gives monotonic seconds. When ``max_spans`` are held, whoever settles them has fallen behind or hangs; no
    further ones are taken in then, and the trees that they would have joined are marked.
    """

    def __init__(self, clock: Callable[[], float], max_spans: int = sys.maxsize) -> None:
        self._clock = clock
        self._max_spans = max_spans
        self._reset(frozenset())

    def _reset(self, inherited: frozenset[tuple[int, int]]) -> None:
        self._lock = threading.RLock()  # a finalizer or a signal handler may end a span while this thread holds it
        self._work = threading.Condition(self._lock)
        self._traces: dict[int, Trace] = {}
        self._plain: dict[int, Tree] = {}
        self._trees: dict[Tree, None] = {}
        self._ended: dict[Tree, None] = {}
        self._stirred: dict[Tree, None] = {}
        self._late: dict[Decided, None] = {}
        self._count = 0
        self._armed = False
        self._asked = False
        self._order = 0
        self._memory = Memory()
        self._inherited = inherited

    def after_fork(self) -> None:
        """Drop what belongs to the parent process, and remember which of its spans were open: they are its own.

        The lock is not taken: a thread that held it at the fork does not exist here.
        """
        trees = list(self._trees)
        held = [
            (tree.trace_id, span_id, span) for tree in trees for span_id, span in [*tree.spans.items(), *tree.twins]
        ]
        still_open = {(trace_id, span_id) for trace_id, span_id, span in held if is_live(span)}
        self._reset(self._inherited | still_open | self._memory.open_ids())

    def join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        """Add a started span to the tree that holds its parent, and return that tree, if one here does."""
        self._lock.acquire()  # here and in end(): half the time of a with block, and every span goes through both
        try:
            tree = self._plain.get(trace_id)
            if tree is None:
                return self._join(trace_id, span_id, parent_id, span)
            spans = tree.spans
            if parent_id not in spans or span_id in spans or self._count >= self._max_spans:
                return self._join(trace_id, span_id, parent_id, span)
            spans[span_id] = span
            tree.open += 1
            self._count += 1
            return tree
        finally:
            self._lock.release()

    def _join(self, trace_id: int, span_id: int, parent_id: int, span: Any) -> Tree | None:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_of(parent_id)
        return None if trace is None or tree is None else self._add(trace, tree, span_id, span)

    def _add(self, trace: Trace, tree: Tree, span_id: int, span: Any) -> Tree | None:
        if self._count >= self._max_spans:
            tree.overflowed = True
            return None
        self._count += trace.add(tree, span_id, span)
        if tree.twins:
            self._plain.pop(trace.trace_id, None)
        return tree

    def open(self, tree: Tree, span: Any) -> Tree | None:
        """Hold a new tree with ``span`` as its local root; a span that is here already joins its own tree again.

        None if too many spans are held.
        """
        trace_id, span_id = tree.trace_id, tree.root_id
        with self._lock:
            trace = self._traces.get(trace_id)
            held = trace.tree_of(span_id) if trace is not None else None
            if trace is not None and held is not None:
                return self._add(trace, held, span_id, span)
            if self._count >= self._max_spans:
                return None
            tree.order = self._next()
            tree.opened_at = tree.seen_at = self._clock()
            self._trees[tree] = None
            if trace is None:
                trace = self._traces[trace_id] = Trace(tree)
                if not tree.piecewise and not self._memory.knows(trace_id):
                    self._plain[trace_id] = tree
            else:
                trace.held[tree] = None
                self._plain.pop(trace_id, None)
            return self._add(trace, tree, span_id, span)

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
        with self._lock:
            if parent_id is None or self.join(trace_id, span_id, parent_id, unseen) is None:
                self.open(own, unseen)
            return self.end(trace_id, span_id, span)

    def end(self, trace_id: int, span_id: int, span: Any) -> bool:
        """Put an ended span in the place of the live one. False if no tree holds it."""
        self._lock.acquire()
        try:
            tree = self._plain.get(trace_id)
            held = None if tree is None else tree.spans.get(span_id)
            if tree is None or held is None or span_id == tree.root_id:
                return self._end(trace_id, span_id, span)
            if held is not span:
                tree.spans[span_id] = span
                tree.open -= 1
                tree.fresh.append(span)
                if len(tree.fresh) == FRESH_LIMIT:
                    self._arm()
            return True
        finally:
            self._lock.release()

    def _end(self, trace_id: int, span_id: int, span: Any) -> bool:
        trace = self._traces.get(trace_id)
        tree = None if trace is None else trace.tree_that_ends(span_id, span)
        if trace is None or tree is None:
            return False
        if self._memory.awaited and self._belongs_to_decided(tree, span_id, span):
            return False
        if not end_in(tree, span_id, span, is_alone=not tree.twins and not trace.shared):
            return True  # the processor was added twice
        tree.open -= 1
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

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _note_end(self, tree: Tree, span_id: int) -> None:
        now = self._clock()
        if span_id == tree.root_id and tree.root_ended_at is None:
            tree.end_order = self._next()
            tree.root_ended_at = now
            self._ended[tree] = None
            self._plain.pop(tree.trace_id, None)
        if tree.piecewise:
            self._stirred[tree] = None
        if tree.open == 0:
            tree.quiet_at = now
        self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._work.notify_all()

    def is_inherited(self, trace_id: int, span_id: int) -> bool:
        """Say whether the span was open in the process that this one was forked from."""
        return bool(self._inherited) and (trace_id, span_id) in self._inherited

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
            decided.waiting.append(span)
            if decided.ruling != "pending":
                self._late[decided] = None
                self._arm()
            return decided

    def take_late(self) -> list[tuple[Decided, list[Any]]]:
        """Take the spans that ended after their run was decided, with the decision that they follow."""
        with self._lock:
            late = [(decided, decided.waiting) for decided in self._late]
            self._late = {}
            for decided, _ in late:
                decided.waiting = []
            return late

    def wait(self, pending_s: float, idle_s: float | None) -> None:
        """Sleep until there is something to do, at most ``pending_s`` if something waits, else ``idle_s``."""
        with self._lock:
            if not self._asked:
                pending = bool(self._ended or self._stirred or self._late)
                self._armed = pending
                self._work.wait(pending_s if pending else idle_s)
                self._armed = True
            self._asked = False

    @contextlib.contextmanager
    def let_go(self) -> Iterator[None]:
        """Let other threads in, though the caller may be a signal handler in a thread that holds the lock."""
        lock: Any = self._lock  # what follows is how a Condition treats its lock
        state = lock._release_save() if lock._is_owned() else None  # noqa: SLF001
        try:
            yield
        finally:
            if state is not None:
                lock._acquire_restore(state)  # noqa: SLF001

    def wake(self) -> None:
        """Make the worker look now."""
        with self._lock:
            self._asked = True
            self._work.notify_all()

    def take_fresh(self, tree: Tree) -> list[Any]:
        """Take the ended spans of a tree that nobody has measured."""
        with self._lock:
            fresh, tree.fresh = tree.fresh, []
            return fresh

    def take_stirred(self) -> list[Tree]:
        """Take the piecewise trees in which a span has ended since the last call."""
        with self._lock:
            stirred, self._stirred = list(self._stirred), {}
            return stirred

    def stir(self, tree: Tree) -> None:
        """Have a piecewise tree looked at again."""
        with self._lock:
            if tree in self._trees:
                self._stirred[tree] = None

    def held(self) -> list[Tree]:
        """List every tree that is held, the oldest first."""
        with self._lock:
            return list(self._trees)

    def ended(self) -> list[Tree]:
        """List the trees whose root has ended and that wait for nobody."""
        with self._lock:
            return list(self._ended)

    def is_in_decided(self, order: int) -> bool:
        """Say whether the root of a decided run was open at the moment ``order``."""
        with self._lock:
            return any(True for _ in self._memory.overlapping(order))

    def hold_for(self, tree: Tree, host: Tree, root_id: int) -> bool:
        """Let ``tree`` wait until the run with this root in ``host`` is decided. False if either tree is gone."""
        with self._lock:
            if tree not in self._trees or host not in self._trees:
                return False
            tree.waits_for = host
            host.claims[tree] = root_id
            self._ended.pop(tree, None)
            return True

    def glimpse(self, tree: Tree) -> Glimpse:
        """List what the tree holds now. The copy is C code over one dict: under 2 ms for 100,000 spans."""
        with self._lock:
            return Glimpse([*tree.spans.values(), *(twin for _, twin in tree.twins)], tree.activity)

    def close(self, tree: Tree, decided: Decided, activity: int) -> bool:
        """Take a whole tree out for good. False if it is gone, or has changed since ``activity`` was read."""
        with self._lock:
            if tree not in self._trees or tree.activity != activity:
                return False
            self._decide(tree, decided)
            return True

    def seize(self, tree: Tree, decided: Decided) -> Glimpse | None:
        """Take a whole tree out for good as it is at this moment. None if it is gone."""
        with self._lock:
            if tree not in self._trees:
                return None
            self._decide(tree, decided)
            return Glimpse([*tree.spans.values(), *(twin for _, twin in tree.twins)], tree.activity)

    def _decide(self, tree: Tree, decided: Decided) -> None:
        held = [*tree.spans.items(), *tree.twins] if tree.open else ()
        self._remember(tree, decided, [span_id for span_id, span in held if is_live(span)])
        self._forget(tree)

    def _remember(self, tree: Tree, decided: Decided, open_ids: list[int]) -> None:
        decided.end_order = tree.end_order or self._next()
        self._memory.remember(decided, open_ids)

    def take(
        self, tree: Tree, members: Sequence[tuple[int, Any]], decided: Decided, activity: int | None = None
    ) -> int | None:
        """Take some spans out of a piecewise tree; ``decided`` remembers them. The last one takes the tree along.

        ``members`` are ids with the spans as they were when somebody looked. What has ended since then counts as an
        end that came late.

        Returns:
            The tree's activity afterwards. None, and nothing is taken, if the tree is gone or its activity is not
            ``activity`` (None: whatever it is).
        """
        ids, seen = [span_id for span_id, _ in members], [span for _, span in members]
        open_ids = [span_id for span_id, span in members if is_live(span)]
        with self._lock:
            if tree not in self._trees or activity not in (None, tree.activity):
                return None
            before, size = tree.activity, len(tree.spans) + len(tree.twins)
            held = self._pop_all(tree, ids, seen)
            if held != seen:
                open_ids = [span_id for span_id, span in zip(ids, held, strict=True) if is_live(span)]
                ended = (now for now, then in zip(held, seen, strict=True) if now is not then and now is not None)
                decided.waiting += [span for span in ended if not is_live(span)]
            tree.open -= len(open_ids)
            taken = size - len(tree.spans) - len(tree.twins)
            tree.weight -= tree.weight * taken // (size or 1)
            self._count -= taken
            tree.gone += before - tree.activity + 1
            self._remember(tree, decided, open_ids)
            if not tree.spans:
                self._forget(tree)
            return tree.activity

    def _pop_all(self, tree: Tree, ids: Sequence[int], seen: Sequence[Any]) -> list[Any]:
        """Take spans out of a tree; of very many in C, since every hook waits for that."""
        trace = self._traces[tree.trace_id]
        if tree.twins or trace.shared or trace.main is not tree:
            return [self._pop(tree, span_id, span) for span_id, span in zip(ids, seen, strict=True)]
        return [*map(tree.spans.pop, ids, repeat(None))]

    def _pop(self, tree: Tree, span_id: int, seen: Any) -> Any | None:
        held = tree.spans.pop(span_id) if tree.spans.get(span_id) is seen and not tree.twins else None
        if held is None:
            held = take_one(tree, span_id, seen)
        trace = self._traces[tree.trace_id]
        if span_id not in tree.spans and (trace.main is not tree or trace.shared):
            trace.drop(tree, span_id)
        return held

    def since(self, tree: Tree, known: Collection[int]) -> tuple[int, list[Any]]:
        """Return the tree's activity, and the spans that have started since all those ``known`` by their ids."""
        with self._lock:
            fresh = list(takewhile(lambda span_id: span_id not in known, reversed(tree.spans)))
            return tree.activity, [tree.spans[span_id] for span_id in fresh]

    def let_pass(self, tree: Tree) -> None:
        """Have a tree decided part by part from now on; whatever is no agent passes."""
        with self._lock:
            tree.passing = tree.piecewise = True
            self._plain.pop(tree.trace_id, None)

    def is_held(self, tree: Tree) -> bool:
        """Say whether the tree is still here."""
        with self._lock:
            return tree in self._trees

    def rule(self, decided: Decided, ruling: Ruling, verdict_span_id: int | None = None) -> list[Any]:
        """Write down what was decided, and hand over the spans that ended while the decision was pending."""
        with self._lock:
            decided.ruling, decided.verdict_span_id = ruling, verdict_span_id
            waiting, decided.waiting = decided.waiting, []
            return waiting

    def free_claims(self, host: Tree, claims: Collection[Tree]) -> None:
        """Let these of the trees that wait for ``host`` wait no longer."""
        with self._lock:
            self._free_claims(host, claims)

    def _free_claims(self, host: Tree, claims: Collection[Tree]) -> None:
        for claim in claims:
            host.claims.pop(claim, None)
            claim.waits_for = None
            if claim in self._trees:
                self._ended[claim] = None

    def _forget(self, tree: Tree) -> None:
        del self._trees[tree]
        self._plain.pop(tree.trace_id, None)
        self._count -= len(tree.spans) + len(tree.twins)
        self._ended.pop(tree, None)
        self._stirred.pop(tree, None)
        self._free_claims(tree, list(tree.claims))
        if self._traces[tree.trace_id].drop_tree(tree):
            del self._traces[tree.trace_id]

    def clear(self) -> int:
        """Drop every tree. Returns how many ended spans that were."""
        with self._lock:
            ended = sum(len(tree.spans) + len(tree.twins) - tree.open for tree in self._trees)
            self._traces, self._plain, self._trees, self._ended, self._stirred, self._late = {}, {}, {}, {}, {}, {}
            self._count = 0
            return ended

    def is_crowded(self) -> bool:
        """Say whether so much is held that whoever settles it should hurry."""
        return self._count > self._max_spans // CROWDED

    def count_spans(self) -> int:
        """Count the spans that are held."""
        return self._count

    def __repr__(self) -> str:
        """A status line."""
        return f"<Buffer {len(self._trees)} trees, {len(self._ended)} ended, {len(self._stirred)} stirred>"
