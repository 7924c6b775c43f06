"""What a held span costs beyond the SDK's own objects."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from statistics import median

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import Counter, tracer_of, wide_run

LIMIT_BYTES = 400
SPANS = 20_000
LAPS = 3
_PAUSE_S = 1.5
"""Longer than the gate's worker sleeps: by then it has weighed everything."""


class Keeper(SpanProcessor):
    """Keeps the ended spans, and that is all."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)


def rows() -> Iterator[Row]:
    """Compare the gate with a list of ended spans."""
    names = ("spangate", "a list of spans")
    figures = race({name: partial(prepare, name) for name in names}, LAPS)
    ours, theirs = (median(figures[name]) for name in names)
    yield Row(
        benchmark="memory",
        measured="bytes of a held span",
        unit="B",
        ours=ours,
        peer="a list of spans",
        theirs=theirs,
    )
    yield Row(
        benchmark="memory",
        measured="of these beyond the SDK's own",
        unit="B",
        ours=ours - theirs,
        limit=LIMIT_BYTES,
        bound="figure",
    )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    processor = GateSpanProcessor(Counter()) if name == "spangate" else Keeper()
    tracer = tracer_of(processor)

    def lap() -> float:
        gc.collect()
        tracemalloc.start()
        root = wide_run(tracer, SPANS)
        time.sleep(_PAUSE_S)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        root.end()
        processor.force_flush()
        return held / SPANS

    return lap
