"""Where a span belongs whose parent no tree here holds: how its parent is missing, told by the parent itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import TraceFlags

from spangate._buffer import Buffer
from spangate._tree import Decided, Standing


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """What is known of a parent that is not here.

    ``joins`` says that the span belongs to an open tree of its trace, if there is one; ``standing`` and ``above`` are
    those of the tree that it starts otherwise.
    """

    standing: Standing
    above: Decided | None = None
    joins: bool = False


def place(buffer: Buffer, span: Span, parent_context: Context | None) -> Origin:
    """Tell apart the ways in which a parent can be missing (design section 3, rule 4)."""
    parent = span.parent
    if parent is None:
        return Origin("root")
    if parent.is_remote or buffer.is_inherited(parent.trace_id, parent.span_id):
        return Origin("remote")
    if not parent.trace_flags & TraceFlags.SAMPLED:
        return Origin("unsampled", joins=True)
    live = _parent_object(span, parent_context)
    if live is not None and live.resource is not span.resource:
        return Origin("foreign", joins=True)
    decided = buffer.decided(parent.trace_id, parent.span_id, None if live is None else live.start_time)
    if decided is not None:
        return Origin("late", decided, joins=decided.is_entry)
    has_ended = live is not None and live.end_time is not None
    return Origin("late") if has_ended else Origin("foreign", joins=True)


def _parent_object(span: Span, parent_context: Context | None) -> Any | None:
    """Return the parent itself, where the context leads to it and it is a span of an SDK.

    With the hooks called in another thread the context is another's; the ids tell.
    """
    candidate = trace.get_current_span(parent_context)
    parent = span.parent
    if parent is None or candidate.get_span_context().span_id != parent.span_id:
        return None
    return candidate if hasattr(candidate, "end_time") and hasattr(candidate, "resource") else None
