"""A run of 100,000 spans and an exporter that takes 50 ms a call: what arrives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import Counter, tracer_of, wide_run

SPANS = 100_000
PAUSE_S = 0.05
_TIMEOUT_MS = 120_000


def rows() -> Iterator[Row]:
    """Compare the gate with the batch processor as it comes."""
    names = ("spangate", "BatchSpanProcessor")
    figures = race({name: partial(prepare, name) for name in names}, 1, warm_up=False)
    yield Row(
        benchmark="slow_exporter",
        measured=f"spans lost of {SPANS:,}, {PAUSE_S * 1000:g} ms a call",
        unit="spans",
        ours=figures["spangate"][0],
        peer="BatchSpanProcessor",
        theirs=figures["BatchSpanProcessor"][0],
        limit=0,
        bound="figure",
    )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    logging.disable()  # the batch processor tells of every span that it drops
    exporter = Counter(PAUSE_S)
    processor = GateSpanProcessor(exporter) if name == "spangate" else BatchSpanProcessor(exporter)
    tracer = tracer_of(processor)

    def lap() -> float:
        wide_run(tracer, SPANS).end()
        processor.force_flush(_TIMEOUT_MS)
        return SPANS - exporter.spans

    return lap
