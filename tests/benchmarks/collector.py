"""What a span costs the sender through a real Collector to a backend that counts, in runs of 500; none may be lost."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, calm, races
from tests.benchmarks._rows import Row
from tests.benchmarks._sink import Sink, sink
from tests.benchmarks._workload import AGENT, OPAQUE, TOOL, TURNS, generation, tracer_of
from tests.collector.running import running

LIMIT = 1.10
SPANS = 500
RUNS = 20
LAPS, HEATS = 9, 1
"""Ten laps with the one to warm up: 100,000 spans."""
_PATIENCE_S = 60.0
_NAMES = ("spangate", "BatchSpanProcessor")


def rows() -> Iterator[Row]:
    """Compare the gate with a batch processor whose queue is large enough to lose nothing."""
    measured = f"CPU of the sender a span, {(LAPS + 1) * RUNS * SPANS:,} spans in runs of {SPANS}"
    if not (os.environ.get("SPANGATE_OTELCOL") or shutil.which("otelcol") or shutil.which("otelcol-contrib")):
        yield Row(benchmark="collector", measured=measured, unit="µs", ours=None, note="no otelcol on this machine")
        return
    with ExitStack() as stack:
        receiver = stack.enter_context(sink())
        urls = {}
        for name in _NAMES:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            urls[name] = stack.enter_context(running("plain", folder, SPANGATE_BACKEND=receiver.endpoint(name))).http
        figures = races({name: partial(prepare, name, urls[name]) for name in _NAMES}, LAPS, HEATS)
        lost = {name: _lost(receiver, name) for name in _NAMES}
    yield Row(
        benchmark="collector",
        measured=measured,
        unit="µs",
        ours=None if lost["spangate"] else calm(figures["spangate"]),
        peer="BatchSpanProcessor",
        theirs=calm(figures["BatchSpanProcessor"]),
        limit=LIMIT,
        note="; ".join(f"{name} lost {count:,}" for name, count in lost.items() if count),
    )


def _lost(receiver: Sink, name: str) -> int:
    """Return how many spans did not come out of the Collector, once all have or none came for long."""
    sent, deadline = (LAPS + 1) * HEATS * RUNS * SPANS, time.monotonic() + _PATIENCE_S
    while (received := receiver.received(f"{name}/v1/traces")) < sent and time.monotonic() < deadline:
        time.sleep(0.1)
    return sent - received


def prepare(name: str, url: str) -> Lap:
    """Set up a contestant."""
    exporter = OTLPSpanExporter(url)
    processor = (
        GateSpanProcessor(exporter)
        if name == "spangate"
        else BatchSpanProcessor(exporter, max_queue_size=2 * RUNS * SPANS)
    )
    tracer = tracer_of(processor)

    def lap() -> float:
        start = time.process_time_ns()
        for _ in range(RUNS):
            conversation(tracer)
        processor.force_flush()
        return (time.process_time_ns() - start) / 1000 / (RUNS * SPANS)

    return lap


def conversation(tracer: Tracer) -> None:
    """Record a healthy run: an agent that asks its model and uses a tool in turn, for long."""
    with tracer.start_as_current_span("invoke_agent researcher", attributes=AGENT):
        for number in range(SPANS - 1):
            if number % 2:
                with tracer.start_as_current_span("execute_tool search", attributes=TOOL) as span:
                    span.set_attribute("gen_ai.tool.call.result", "42 results")
            else:
                generation(tracer, number % TURNS, OPAQUE)
