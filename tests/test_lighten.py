"""Ended spans share what is empty in them, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext

from spangate import GateSpanProcessor
from spangate._sdk.lighten import lighten

LINK = Link(SpanContext(1, 2, is_remote=True))


class Kept(SpanProcessor):
    """Keeps what stands behind the gate in the provider is given."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def recorded(gate: SpanProcessor | None, **limits: int) -> list[Any]:
    """Record an empty span, and one with an event and a link."""
    kept = Kept()
    provider = TracerProvider(span_limits=SpanLimits(**limits), shutdown_on_exit=False)
    for processor in (gate, kept):
        if processor is not None:
            provider.add_span_processor(processor)
    tracer = provider.get_tracer("test")
    tracer.start_span("empty").end()
    with tracer.start_as_current_span("full", links=[LINK]) as span:
        span.add_event("event")
    provider.shutdown()
    return kept.spans


def told(span: Any) -> tuple[Any, ...]:
    names = [event.name for event in span.events]
    return names, list(span.links), span.dropped_events, span.dropped_links, span.dropped_attributes


@pytest.mark.parametrize("limits", [{}, {"max_events": 0, "max_links": 0}])
def test_another_processor_sees_what_it_always_saw(limits: dict[str, int]) -> None:
    gated = recorded(GateSpanProcessor(InMemorySpanExporter()), **limits)
    assert [told(span) for span in gated] == [told(span) for span in recorded(None, **limits)]


def test_what_is_empty_is_shared_and_what_is_not_is_the_spans_own() -> None:
    empty, full = recorded(GateSpanProcessor(InMemorySpanExporter()))
    assert empty._events is empty._links
    assert len({id(empty._events), id(full._events), id(full._links)}) == 3


def test_whoever_writes_into_an_ended_span_writes_into_no_other(caplog: pytest.LogCaptureFixture) -> None:
    one, _ = recorded(GateSpanProcessor(InMemorySpanExporter()))
    one._events.append(Event("too late"))
    one._links.extend([LINK])
    other, _ = recorded(GateSpanProcessor(InMemorySpanExporter()))
    assert told(other) == told(one) == ([], [], 0, 0, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "a span that has ended takes no Event",
        "a span that has ended takes no Link",
    ]


class Special(ReadableSpan):
    """A span of somebody else's making."""


@pytest.mark.parametrize(
    "span", [ReadableSpan("by hand"), ReadableSpan("by hand", events=[Event("event")]), Special("special")]
)
def test_spans_that_the_sdk_did_not_make_stay_as_they_are(span: Any) -> None:
    before = dict(vars(span))
    lighten([span])
    assert vars(span) == before
