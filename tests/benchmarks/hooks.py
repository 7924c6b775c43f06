"""What a span costs the thread that records it: start, attributes and end, in runs of 20 spans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, calm, races
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import RUN_SPANS, Counter, agent_run, model_run, tracer_of

LIMIT = 1.05
LAPS = 40
HEATS = 8
RUNS = 50
WARM_UP = 5
"""Runs at the beginning of a lap that are not counted: a thread that has slept starts with cold caches."""
WORK: Final[dict[str, Callable[[Tracer], None]]] = {
    "a generation": model_run,
    "a span of generations and tools": agent_run,
}


def rows() -> Iterator[Row]:
    """Compare the gate with the batch processor, and with a processor that does nothing.

    The limit is on generations, which are what an agent's trace weighs most of; a tool span is a third of one, and the
    gate writes an invocation id on it.
    """
    names = ("spangate", "BatchSpanProcessor", "no processor")
    for what in WORK:
        figures = races({name: partial(prepare, name, what) for name in names}, LAPS, HEATS)
        for name, limit in (("BatchSpanProcessor", LIMIT if WORK[what] is model_run else None), ("no processor", None)):
            yield Row(
                benchmark="hooks",
                measured=f"CPU of the recording thread, {what}",
                unit="µs",
                ours=calm(figures["spangate"]),
                peer=name,
                theirs=calm(figures[name]),
                limit=limit,
            )


def prepare(name: str, what: str) -> Lap:
    """Set up a contestant."""
    processor = _processor(name)
    tracer = tracer_of(processor)
    work = WORK[what]

    def lap() -> float:
        for _ in range(WARM_UP):
            work(tracer)
        start = time.thread_time_ns()
        for _ in range(RUNS):
            work(tracer)
        used = time.thread_time_ns() - start
        processor.force_flush()
        return used / 1000 / (RUNS * RUN_SPANS)

    return lap


def _processor(name: str) -> SpanProcessor:
    if name == "spangate":
        return GateSpanProcessor(Counter())
    return BatchSpanProcessor(Counter()) if name == "BatchSpanProcessor" else SpanProcessor()
