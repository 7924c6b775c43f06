"""What processes of ``multiprocessing`` do in the tests of the receiver: record a tool call, wherever they may."""

from __future__ import annotations

import os
from functools import cache

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

TOOL = {"gen_ai.operation.name": "execute_tool"}
inherited: list[TracerProvider] = []
"""The provider of the test, which forked children have as well; others have none."""


@cache
def _own() -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    return provider


def work(name: str) -> int:
    """Record a tool call, by the provider that was forked, or by one set up from the environment."""
    provider = inherited[0] if inherited else _own()
    with provider.get_tracer("worker").start_as_current_span(f"execute_tool {name}", attributes=TOOL):
        trace.get_current_span().set_attribute("worker", os.getpid())
    return os.getpid()
