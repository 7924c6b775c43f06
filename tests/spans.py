"""Builders of spans and runs for tests: ids count up, times are whole seconds unless a test says otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from spangate._records import Finding, Role, Span, Trigger
from spangate._run import Run

SECOND = 1_000_000_000
TRACE = 0xA11CE
_ids = itertools.count(1)


def span(
    role: Role = "other",
    name: str | None = None,
    *,
    parent: Span | None = None,
    start: float = 0.0,
    end: float | None = 1.0,
    **fields: Any,
) -> Span:
    """Make a span. ``start`` and ``end`` are seconds, ``parent`` gives trace and parent id; ``fields`` win over all."""
    made: dict[str, Any] = {
        "trace_id": TRACE if parent is None else parent.trace_id,
        "span_id": next(_ids),
        "parent_id": None if parent is None else parent.span_id,
        "name": name or role,
        "start_ns": round(start * SECOND),
        "end_ns": None if end is None else round(end * SECOND),
        "role": role,
    }
    return Span(**{**made, **fields})


def run_of(
    spans: Sequence[Span],
    *,
    root: Span | None = None,
    trigger: Trigger = "root_end",
    notes: Sequence[Finding] = (),
    starts_known: bool = True,
    claimed: Sequence[Span] = (),
) -> Run:
    """Make a run of ``spans``, by default with the first of them as its root."""
    return Run("run-1", root or spans[0], spans, trigger, notes, starts_known, claimed)
