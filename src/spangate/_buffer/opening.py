"""Runs that a program opens by itself, and the trees that carry their ids (design section 3, rule 5).

Such a tree has a trace of its own, and is held until the run is decided: it is a part of that run.
"""

from __future__ import annotations

from typing import Any

from spangate._buffer.hearing import Hearing
from spangate._buffer.tree import Decided, Tree


class Opening(Hearing):
    """The same trees, as whoever opens a run sees them."""

    def open_run(self, run_id: str, trace_id: int, span_id: int, *, is_own: bool) -> None:
        """Have what carries this run id belong to the run that a span here opens. Nested, the outermost is the run.

        The tree takes the id if it ``is_own``: made for this very run.
        """
        with self._lock:
            tree = self._tree_of(trace_id, span_id)
            if tree is None or tree.is_member or tree.host is not None or run_id in self._opened:
                return
            if is_own and not tree.piecewise and not tree.opened:
                tree.tree_id = run_id
            tree.opened[span_id] = run_id
            self._opened[run_id] = tree, span_id

    def has_open_run(self, run_id: str) -> bool:
        """Say whether a run with this id is open here."""
        return run_id in self._opened

    def decided_run(self, run_id: str) -> Decided | None:
        """Return the decision about a run that was opened here, if it is remembered."""
        with self._lock:
            return self._memory.of_run(run_id)

    def carry(self, own: Tree, run_id: str, span: Any) -> Tree | None:
        """Hold the root of a new tree that carries a run id: in the tree of that run, or beside it in its own trace.

        None if no such run is open here, or too many spans are held.
        """
        with self._lock:
            host, root_id = self._opened.get(run_id, (None, 0))
            if host is None:
                return None
            if host.trace_id == own.trace_id:
                host.adopted[own.root_id] = own.standing
                return self._add(self._traces[host.trace_id], host, own.root_id, span)
            own.host, own.piecewise = host, False
            if own.standing not in ("root", "unsampled"):
                own.standing = "remote"  # wherever its parent is: the run that it belongs to is here
            held = self.open(own, span)
            if held is own:
                host.bound[own] = root_id
            host.overflowed = host.overflowed or held is None
            return held

    def _close_runs(self, tree: Tree) -> None:
        """Let go of the runs of a tree that is taken out, and of what is bound to it."""
        for run_id in tree.opened.values():
            self._opened.pop(run_id, None)
        for own in [*tree.bound]:
            self._unbind(own)
        if tree.host is not None:
            self._unbind(tree)

    def _unbind(self, own: Tree) -> None:
        host, own.host = own.host, None
        if host is not None:
            host.bound.pop(own, None)
        if own in self._trees and own.root_ended_at is not None:
            self._ended[own] = None
