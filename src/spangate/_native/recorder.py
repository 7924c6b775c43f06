"""How the spans of a loop are written: by which tracer, with what content, and what an exception leaves on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from spangate._dialects._outcome import ERROR_TYPE, outcome_named
from spangate._errors import LoopError
from spangate._records import Outcome

_REASONS: Final[Mapping[Outcome, str]] = {"timeout": "timeout", "cancelled": "cancelled"}


class Recorder:
    """Writes spans. ``records_content`` says that messages, arguments and results are written, not their hashes alone.

    Without an SDK nothing comes of it, and nothing fails.
    """

    def __init__(self, tracer: Tracer, *, records_content: bool) -> None:
        self._tracer = tracer
        self.records_content = records_content

    def start(self, name: str, inside: Context, facts: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL) -> Span:
        """Start a span. Facts that are None are not known."""
        known = {key: value for key, value in facts.items() if value is not None}
        return self._tracer.start_span(name, inside, kind, known)


def fail(span: Span, error: BaseException | str) -> None:
    """Write on a span that it failed: what was raised, or its name where nothing was."""
    if isinstance(error, str):
        span.set_attribute(ERROR_TYPE, error)
        span.set_status(Status(StatusCode.ERROR, error))
    else:
        name = error_name(error)
        span.record_exception(error)
        span.set_attribute(ERROR_TYPE, name)
        span.set_status(Status(StatusCode.ERROR, f"{name}: {error}"))


def error_name(error: BaseException) -> str:
    """Return by what name an exception is known."""
    return type(error).__qualname__


def reason_of(error: BaseException) -> str:
    """Return for what a run halts that an exception leaves."""
    if isinstance(error, LoopError):
        return error.halt_reason
    if isinstance(error, SystemExit):
        return "cancelled"
    kinds = (outcome_named(kind.__name__) for kind in type(error).__mro__)
    return next((_REASONS[kind] for kind in kinds if kind in _REASONS), "tool_error")
