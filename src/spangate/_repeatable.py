"""Ids and times that are the same in every test: what a tracer provider needs for runs that repeat."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, Tracer

NEW_YEAR_NS: Final = 1_767_225_600_000_000_000
"""The start of 2026, in nanoseconds since the epoch."""


class CountingIds(IdGenerator):
    """Trace ids and span ids that count up from 1."""

    def __init__(self) -> None:
        self._traces = itertools.count(1)
        self._spans = itertools.count(1)

    def generate_trace_id(self) -> int:
        """Return the next trace id."""
        return next(self._traces)

    def generate_span_id(self) -> int:
        """Return the next span id."""
        return next(self._spans)


class Clock:
    """A clock that stands still between readings.

    Args:
        now_ns: What the next reading gives, in nanoseconds since the epoch.
        step_ns: By how much each reading moves the clock on, so that a run has an order in time.
    """

    def __init__(self, now_ns: int = NEW_YEAR_NS, step_ns: int = 1_000_000) -> None:
        self.now_ns = now_ns
        self.step_ns = step_ns

    def __call__(self) -> int:
        """Read the clock."""
        now_ns = self.now_ns
        self.now_ns += self.step_ns
        return now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1_000_000_000)


def timed(tracer: Tracer, clock: Callable[[], int]) -> Tracer:
    """Have the spans of ``tracer`` start and end at the time of ``clock`` where their owner gives none; return it.

    Public methods are replaced on the object, since the SDK lets nobody choose the class of its spans.
    """
    if not isinstance(tracer.start_span, partial):  # a provider hands out the same tracer again
        tracer.start_span = partial(_start_span, tracer.start_span, clock)  # type: ignore[method-assign]
    return tracer


def _start_span(start_span: Callable[..., Span], clock: Callable[[], int], *args: Any, **kwargs: Any) -> Span:
    given = inspect.signature(start_span).bind(*args, **kwargs)
    if given.arguments.get("start_time") is None:
        given.arguments["start_time"] = clock()
    span = start_span(*given.args, **given.kwargs)
    end = span.end
    span.end = lambda end_time=None: end(clock() if end_time is None else end_time)  # type: ignore[method-assign]
    return span
