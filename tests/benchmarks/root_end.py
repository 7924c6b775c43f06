"""How long ``end()`` of a root takes that has 50,000 spans below it: the moment at which others let go of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import Counter, tracer_of, wide_run

LIMIT_US = 100
LAPS = 7
SPANS = 50_000
TAIL_SAMPLING = "logfire TailSamplingProcessor"


def rows() -> Iterator[Row]:
    """Compare the gate with the batch processor, which holds nothing, and with a processor that does."""
    peers = ["BatchSpanProcessor"]
    has_logfire = find_spec("logfire") is not None
    if has_logfire:
        peers.append(TAIL_SAMPLING)
    figures = race({name: partial(prepare, name) for name in ("spangate", *peers)}, LAPS)
    for peer in peers:
        yield Row(
            benchmark="root_end",
            measured=f"end() of a root, {SPANS:,} spans below",
            unit="µs",
            ours=median(figures["spangate"]),
            peer=peer,
            theirs=median(figures[peer]),
            limit=LIMIT_US,
            bound="figure",
            note="" if has_logfire else f"{TAIL_SAMPLING}: logfire is not installed",
        )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    processor = _processor(name)
    tracer = tracer_of(processor)

    def lap() -> float:
        root = wide_run(tracer, SPANS)
        start = time.perf_counter_ns()
        root.end()
        took = time.perf_counter_ns() - start
        processor.force_flush()
        return took / 1000

    return lap


def _processor(name: str) -> SpanProcessor:
    if name == "spangate":
        return GateSpanProcessor(Counter())
    batch = BatchSpanProcessor(Counter(), max_queue_size=2 * SPANS)
    if name != TAIL_SAMPLING:
        return batch
    tail_sampling: Any = import_module("logfire.sampling._tail_sampling")
    processor: SpanProcessor = tail_sampling.TailSamplingProcessor(batch, _keep_when_over)
    return processor


def _keep_when_over(span: Any) -> float:
    """Decide as the gate does: when the root has ended."""
    return float(span.event == "end" and span.span.parent is None)
