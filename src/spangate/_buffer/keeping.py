"""Log records of the live trees, kept with the tree that they belong to or the decision that they follow.

A record that names a span goes where that span is. One that names none that is here goes to the tree that its trace
belongs to, or to the one whose run id it carries. They are bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Final

from spangate._buffer.held import FRESH_LIMIT
from spangate._buffer.kept import Fate, Kept
from spangate._buffer.receiving import Receiving
from spangate._buffer.trace import is_live, same_id
from spangate._buffer.tree import SPAN_OVERHEAD, Decided, Tree

_NO_SPAN: Final = 0
_BY_NUMBER: Final = attrgetter("number")


class Keeping(Receiving):
    """The same trees, as whoever emits log records sees them."""

    def keep(self, kept: Kept, run_id: str | None = None) -> Fate:
        """Keep a log record until its run is decided, or say what becomes of it at once.

        ``run_id`` is what a record that names no span carries.
        """
        with self._lock:
            home = self._home_of_record(kept, run_id)
            if home is None:
                return "pass"
            if isinstance(home, Decided) and home.ruling != "pending":
                return "withheld" if home.ruling == "fail" else "pass"
            if self._record_weight + kept.weight > self._max_spans * SPAN_OVERHEAD:
                if isinstance(home, Tree):
                    home.overflowed = True
                return "full"
            self._hold(kept, home)
            return "held"

    def _home_of_record(self, kept: Kept, run_id: str | None) -> Tree | Decided | None:
        trace_id, span_id = kept.trace_id, kept.span_id
        if not trace_id:
            return None if run_id is None else self._of_run(run_id)
        tree = self._tree_of(trace_id, span_id)
        if tree is not None:
            return tree
        found = self._memory.of_log_record(trace_id, span_id) or self._main_tree(trace_id)
        if found is not None:
            return found
        trace = self._traces.get(trace_id)
        return self._memory.newest(trace_id) if trace is None else next(iter(trace.held))

    def _of_run(self, run_id: str) -> Tree | Decided | None:
        opened = self._opened.get(run_id)
        return self._memory.of_run(run_id) if opened is None else opened[0]

    def _hold(self, kept: Kept, home: Tree | Decided) -> None:
        self._record_weight += kept.weight
        self._record_number = kept.number = self._record_number + 1
        if isinstance(home, Tree):
            is_here = kept.span_id in home.spans
            kept.span_ended = is_here and _has_ended(home, kept.span_id)
            kept.joined = is_here and not kept.span_ended
            home.record_weight += kept.weight
            home.records.setdefault(kept.span_id if is_here else _NO_SPAN, []).append(kept)
        elif isinstance(home.records, tuple):
            home.records = [kept]
        else:
            home.records.append(kept)
        if kept.number % FRESH_LIMIT == 0:
            self._arm()  # somebody should look how much is held

    @property
    def holds_records(self) -> bool:
        """Whether any log record waits for a decision."""
        return self._record_weight > 0

    def take_records(self, tree: Tree, span_ids: Collection[int]) -> list[Kept]:
        """Take the log records out of a tree that name one of these spans, or none that was here."""
        with self._lock:
            taken = self._pop_records(tree, [*span_ids, _NO_SPAN])
            self._record_weight -= sum(kept.weight for kept in taken)
            return taken

    def take_dropped(self) -> list[Kept]:
        """Take the log records of trees that were dropped."""
        with self._lock:
            dropped, self._dropped = self._dropped, []
            return dropped

    def let_go_records(self, weight: int) -> None:
        """Count log records of so many bytes as held no longer."""
        with self._lock:
            self._record_weight -= weight

    def _drop_records(self) -> None:
        for tree in self._trees:
            self._record_weight -= tree.record_weight
            self._dropped += self._pop_records(tree, [*tree.records])

    def _part_with_records(self, tree: Tree, decided: Decided, span_ids: Collection[int] | None) -> None:
        """Have the log records of these spans of a tree, or all of them, share what is decided about those.

        Those that name no span which was here go with what is no run: there is no telling whose they are.
        """
        if not tree.records:
            return
        if span_ids is None:
            span_ids = [*tree.records]
        elif not decided.has_agent:
            span_ids = [*span_ids, _NO_SPAN]
        decided.records = self._pop_records(tree, span_ids)

    def _pop_records(self, tree: Tree, span_ids: Iterable[int]) -> list[Kept]:
        taken = [kept for span_id in span_ids for kept in tree.records.pop(span_id, ())]
        tree.record_weight -= sum(kept.weight for kept in taken)
        taken.sort(key=_BY_NUMBER)
        return taken


def _has_ended(tree: Tree, span_id: int) -> bool:
    """Say whether a span that is in a tree has ended."""
    if span_id in tree.arrived:
        return True
    return not is_live(tree.spans[span_id]) and not any(is_live(span) for span in same_id(tree, span_id))
