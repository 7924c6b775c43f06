"""What a span costs the thread that records it: start, ten attributes and end, in runs of 20 spans."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from statistics import median

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import RUN_SPANS, Counter, agent_run, tracer_of

LIMIT = 1.05
LAPS = 25
RUNS = 150


def rows() -> Iterator[Row]:
    """Compare the gate with the batch processor, and with a processor that does nothing."""
    names = ("spangate", "BatchSpanProcessor", "no processor")
    figures = race({name: partial(prepare, name) for name in names}, LAPS)
    ours = median(figures["spangate"])
    for name, limit in (("BatchSpanProcessor", LIMIT), ("no processor", None)):
        yield Row(
            benchmark="hooks",
            measured="CPU of the recording thread a span",
            unit="µs",
            ours=ours,
            peer=name,
            theirs=median(figures[name]),
            limit=limit,
        )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    processor = _processor(name)
    tracer = tracer_of(processor)

    def lap() -> float:
        start = time.thread_time_ns()
        for _ in range(RUNS):
            agent_run(tracer)
        used = time.thread_time_ns() - start
        processor.force_flush()
        return used / 1000 / (RUNS * RUN_SPANS)

    return lap


def _processor(name: str) -> SpanProcessor:
    if name == "spangate":
        return GateSpanProcessor(Counter())
    return BatchSpanProcessor(Counter()) if name == "BatchSpanProcessor" else SpanProcessor()
