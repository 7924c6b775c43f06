"""A child's first step: the context that its parent left in the environment made the current one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from opentelemetry import context, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from spangate._surroundings import surroundings
from spangate._telemetry import logger

ARMED: Final = "SPANGATE_ATTACH"
"""The environment variable by which a set-up without code is told to call :func:`attach_parent`."""
_NAMES: Final = ("traceparent", "tracestate", "baggage")


def attach_parent(environment: Mapping[str, str] | None = None) -> bool:
    """Continue the trace of the program that started this one, for what runs in the current context from now on.

    Call it once, early, in the main thread: before the first span. The spans that follow are children of the parent's
    span for this program, as ``TRACEPARENT``, ``TRACESTATE`` and ``BAGGAGE`` tell (W3C Trace Context and Baggage in
    environment variables, as OpenTelemetry specifies them).

    Args:
        environment: Where to look; None: ``os.environ``.

    Returns:
        True if there is a parent. False if there is none, if what is there is malformed, which is logged and a warning
        on the verdicts of this process, or if a span is current already.
    """
    told = os.environ if environment is None else environment
    if trace.get_current_span().get_span_context().is_valid:
        return False
    for finding in surroundings(told):
        logger.warning("%s: %s", finding.code, finding.detail)
    carrier = {name: value for name in _NAMES if (value := told.get(name.upper(), told.get(name))) is not None}
    found = TraceContextTextMapPropagator().extract(carrier, context.get_current())
    if not trace.get_current_span(found).get_span_context().is_valid:
        return False
    context.attach(W3CBaggagePropagator().extract(carrier, found))
    return True


def attach_if_armed() -> None:
    """Call :func:`attach_parent` if ``SPANGATE_ATTACH`` is 1 or true: what a set-up without code calls at its end."""
    if os.environ.get(ARMED, "").strip().lower() in ("1", "true"):
        attach_parent()
