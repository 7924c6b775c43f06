"""What a span costs the whole process: recorded, held, judged by the default gates, released and exported by OTLP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, calm, races
from tests.benchmarks._rows import Row
from tests.benchmarks._sink import Sink, sink
from tests.benchmarks._workload import MESSAGES, OPAQUE, RUN_SPANS, Content, agent_run, tracer_of

LIMIT = 1.10
LAPS = 8
HEATS = 3
RUNS = 150


def rows() -> Iterator[Row]:
    """Compare the gate with a batch processor whose queue is large enough to lose nothing.

    By default instrumentations record no messages. Where they do, the gate reads them to match tools with calls, and
    hashes them, which is work that the peer does not do.
    """
    yield _row("CPU of the process a span, OTLP/HTTP", OPAQUE, LIMIT)
    yield _row("the same, messages read and hashed", MESSAGES, None)


def _row(measured: str, content: Content, limit: float | None) -> Row:
    names = ("spangate", "BatchSpanProcessor")
    with sink() as receiver:
        figures = races({name: partial(prepare, name, receiver, content) for name in names}, LAPS, HEATS)
        received = {name: receiver.received(name) for name in names}
    sent = HEATS * (LAPS + 1) * RUNS * RUN_SPANS
    lost = "; ".join(f"{name} lost {sent - received[name]:,} of {sent:,}" for name in names if received[name] != sent)
    return Row(
        benchmark="pipeline",
        measured=measured,
        unit="µs",
        ours=None if received["spangate"] != sent else calm(figures["spangate"]),
        peer="BatchSpanProcessor",
        theirs=calm(figures["BatchSpanProcessor"]),
        limit=limit,
        note=lost,
    )


def prepare(name: str, receiver: Sink, content: Content) -> Lap:
    """Set up a contestant."""
    exporter = OTLPSpanExporter(receiver.endpoint(name))
    processor = (
        GateSpanProcessor(exporter)
        if name == "spangate"
        else BatchSpanProcessor(exporter, max_queue_size=2 * RUNS * RUN_SPANS)
    )
    tracer = tracer_of(processor)

    def lap() -> float:
        start = time.process_time_ns()
        for _ in range(RUNS):
            agent_run(tracer, content)
        processor.force_flush()
        return (time.process_time_ns() - start) / 1000 / (RUNS * RUN_SPANS)

    return lap
