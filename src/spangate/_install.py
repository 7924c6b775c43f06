"""Putting a gate on a provider that somebody else has set up: their exporters move behind it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import TracerProvider

from spangate._errors import SpangateError
from spangate._processor import GateSpanProcessor
from spangate._sdk.takeover import exporters_of, flush, processors_of, sdk_provider, take_exporters


def install(provider: TracerProvider | None = None, **settings: Any) -> GateSpanProcessor:
    """Gate a tracer provider whose vendor has already added processors and exporters.

    The processors stay and go on stamping spans; their exporters move behind the gate. Spans that they hold are
    flushed first. Calling it again changes nothing and returns the gate that is there.

    Args:
        provider: the provider; None: the global one, ``opentelemetry.trace.get_tracer_provider()``.
        settings: as for :class:`GateSpanProcessor`. ``exporter`` adds one or more to those that are taken over.

    Returns:
        The gate.

    Raises:
        SpangateError: there is no SDK tracer provider to put a gate on, or it exports nowhere and no exporter is given.
        ValueError: a setting out of its range; the provider is as it was then.
    """
    sdk = sdk_provider(trace.get_tracer_provider() if provider is None else provider)
    if sdk is None:
        raise SpangateError(
            "no tracer provider of the OpenTelemetry SDK is set, so there is nothing to gate: call install() after "
            "trace.set_tracer_provider(TracerProvider()), or after your vendor's set-up, or pass the provider"
        )
    processors = processors_of(sdk)
    for processor in processors:
        if isinstance(processor, GateSpanProcessor):
            return processor
    given = settings.pop("exporter", None)
    added = given if isinstance(given, Sequence) else () if given is None else (given,)
    exporters = [*exporters_of(processors), *added]
    if not exporters:
        raise SpangateError(
            "the provider has no exporter to take over: pass one, as install(exporter=OTLPSpanExporter())"
        )
    gate = GateSpanProcessor(exporters, **settings)
    for processor in processors:
        flush(processor)
    stand_ins = take_exporters(processors)
    sdk.add_span_processor(gate)
    is_there_ns = time.time_ns()
    for processor in processors:
        flush(processor)  # what ended meanwhile, to the stand-ins
    for stand_in in stand_ins:
        stand_in.hand_over(gate.on_end, is_there_ns)
    return gate
