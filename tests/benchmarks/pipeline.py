"""What a span costs the whole process: recorded, held, judged by the default gates, released and exported by OTLP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from statistics import median

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._sink import Sink, sink
from tests.benchmarks._workload import RUN_SPANS, agent_run, tracer_of

LIMIT = 1.10
LAPS = 12
RUNS = 150


def rows() -> Iterator[Row]:
    """Compare the gate with a batch processor whose queue is large enough to lose nothing."""
    names = ("spangate", "BatchSpanProcessor")
    with sink() as receiver:
        figures = race({name: partial(prepare, name, receiver) for name in names}, LAPS)
        received = {name: receiver.received(name) for name in names}
    sent = (LAPS + 1) * RUNS * RUN_SPANS
    lost = "; ".join(f"{name} lost {sent - received[name]:,} of {sent:,}" for name in names if received[name] != sent)
    yield Row(
        benchmark="pipeline",
        measured="CPU of the process a span, OTLP/HTTP",
        unit="µs",
        ours=None if received["spangate"] != sent else median(figures["spangate"]),
        peer="BatchSpanProcessor",
        theirs=median(figures["BatchSpanProcessor"]),
        limit=LIMIT,
        note=lost,
    )


def prepare(name: str, receiver: Sink) -> Lap:
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
            agent_run(tracer)
        processor.force_flush()
        return (time.process_time_ns() - start) / 1000 / (RUNS * RUN_SPANS)

    return lap
