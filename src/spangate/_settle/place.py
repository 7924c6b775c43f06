"""Where a span belongs whose parent no tree here holds: how its parent is missing, and the tree that it starts."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from spangate._buffer import Buffer
from spangate._buffer.tree import Decided, Standing, Tree
from spangate._hosts import carried_run_id, is_errand
from spangate._sdk.odd import kind_of

_MAX_TRACES = 1024
"""Of so many traces it is remembered which of their spans the parent process holds."""


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """What is known of a parent that is not here.

    ``joins`` says that the span belongs to an open tree of its trace, if there is one; ``standing`` and ``above`` are
    those of the tree that it starts otherwise.
    """

    standing: Standing
    above: Decided | None = None
    joins: bool = False


class Placer:
    """Finds or makes the trees of such spans. ``piecewise_kinds`` are the kinds of local root decided part by part.

    ``member_of`` is the id of the run that the whole process is a part of, None if it is of none. ``started_by`` is the
    id of the run that has started the process, of which it is no part: what is recorded here is judged here.
    """

    def __init__(
        self,
        buffer: Buffer,
        piecewise_kinds: Sequence[SpanKind],
        member_of: str | None,
        started_by: str | None = None,
    ) -> None:
        self._buffer = buffer
        self._member_of = member_of
        self._started_by = started_by
        self._inherits_runs = False
        self._held_by_parent: dict[int, int] = {}
        self._piecewise_kinds = piecewise_kinds
        self._random = random.Random()  # noqa: S311  for ids; of its own, since a user's random.seed() would repeat them
        self.reseed()

    def reseed(self) -> None:
        """Make other ids from now on: a forked child would repeat its parent's."""
        self._random.seed(os.urandom(16))

    def inherit_runs(self) -> None:
        """Have trees below spans of the process that this was forked from be members of the runs that it holds."""
        self._inherits_runs = True

    def parent_of(self, trace_id: int) -> int:
        """Return the span of the parent process below which the last tree in a trace was begun, 0 if none was."""
        return self._held_by_parent.get(trace_id, 0)

    @property
    def has_members(self) -> bool:
        """Whether trees here may be members of runs that another process holds."""
        return self._inherits_runs or self._member_of is not None

    def place(
        self, span: Span, context: SpanContext, parent: SpanContext | None, parent_context: Context | None
    ) -> Tree | None:
        """Put a started span into an open tree of its trace, if that is where it belongs, else into one of its own.

        ``context`` and ``parent`` are the span's. None if no tree holds it: it follows a run that was decided while its
        parent was open, or too much is held.
        """
        run_id = None if self.has_members else carried_run_id(parent_context)
        if parent is None:
            return self._start(span, context, run_id)
        if not parent.is_remote and self._buffer.follow(parent.trace_id, parent.span_id, context.span_id):
            return None
        origin = _origin(self._buffer, span, parent, parent_context)
        own = self._tree(span, context, origin.standing, origin.above)
        if self._inherits_runs and (self._buffer.is_inherited_trace(parent.trace_id) or is_errand(parent_context)):
            own.is_member, own.piecewise = True, False
            if len(self._held_by_parent) >= _MAX_TRACES:
                self._held_by_parent.clear()
            self._held_by_parent[parent.trace_id] = parent.span_id
        joined = None if run_id is None else self._buffer.carry(own, run_id, span)
        return joined or (self._buffer.adopt(own, span) if origin.joins else None) or self._buffer.open(own, span)

    def _start(self, span: Span, context: SpanContext, run_id: str | None) -> Tree | None:
        """Put a span without a parent into a tree of its own; one that carries the id of a run belongs to that."""
        if run_id is None:
            return self._buffer.open(self._tree(span, context, "root", None), span)
        own = self._tree(span, context, "root", None)
        joined = self._buffer.carry(own, run_id, span)
        if joined is not None:
            return joined
        above = self._buffer.decided_run(run_id)
        return self._buffer.open(own if above is None else self._tree(span, context, "late", above), span)

    def admit(self, span: ReadableSpan, above: Decided | None = None) -> bool:
        """Hold an ended span that is not here: it was open when the processor was added, or was let go at a bound.

        False if there is no room for it.
        """
        parent = span.parent
        parent_id = None if parent is None or parent.is_remote else parent.span_id
        own = self._tree(span, span.context, "unseen" if above is None else "cut", above)
        return self._buffer.admit(own, parent_id, span)

    def _tree(self, span: ReadableSpan, context: SpanContext, standing: Standing, above: Decided | None) -> Tree:
        tree = Tree(context[0], context[1], self._member_of or self._new_id(context[1]))
        tree.standing = standing
        tree.piecewise = kind_of(span.kind) in self._piecewise_kinds and (above is None or not above.has_agent)
        if standing == "cut":
            tree.overflowed = above is None or not above.is_entry
        else:
            tree.above = above
        if self._member_of is not None:
            tree.is_member, tree.piecewise = True, False
        return tree

    def _new_id(self, root_id: int) -> str:
        if self._started_by:
            return f"{self._started_by}-{root_id:016x}"  # that run may start several programs, each with several trees
        return self._random.getrandbits(64).to_bytes(8, "big").hex()


def _origin(buffer: Buffer, span: Span, parent: SpanContext, parent_context: Context | None) -> Origin:
    """Tell apart the ways in which a parent can be missing (design section 3, rule 4)."""
    trace_id, parent_id = parent.trace_id, parent.span_id
    if parent.is_remote or buffer.is_inherited(trace_id, parent_id):
        return Origin("remote")
    live = _parent_object(parent, parent_context)
    is_sampled = bool(parent.trace_flags & TraceFlags.SAMPLED)
    if live is not None and live.resource is not span.resource:
        return Origin("foreign" if is_sampled else "unsampled", joins=True)
    decided = buffer.decided_open(trace_id, parent_id)
    if decided is not None and decided.is_cut:
        return Origin("cut", decided)
    decided = decided or buffer.decided(trace_id, parent_id, None if live is None else live.start_time)
    if decided is not None:
        return Origin("late", decided, joins=decided.is_entry)
    return _undecided(live, is_sampled=is_sampled)


def _undecided(live: Any | None, *, is_sampled: bool) -> Origin:
    """Tell how a parent is missing that was a member of nothing."""
    if not is_sampled:
        return Origin("unsampled", joins=True)
    has_ended = live is not None and live.end_time is not None
    return Origin("late") if has_ended else Origin("foreign", joins=True)


def _parent_object(parent: SpanContext, parent_context: Context | None) -> Any | None:
    """Return the parent itself, where the context leads to it and it is a span of an SDK.

    With the hooks called in another thread the context is another's; the ids tell.
    """
    candidate = trace.get_current_span(parent_context)
    if candidate.get_span_context().span_id != parent.span_id:
        return None
    return candidate if hasattr(candidate, "end_time") and hasattr(candidate, "resource") else None
