"""How long a busy thread of the program is kept waiting while a run of 50,000 spans is judged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import Counter, tracer_of, wide_run

LIMIT_MS = 5
SPANS = 50_000
LAPS = 7
_STEP = range(1500)
"""Some 50 µs of Python."""
_ALONE_S = 1.0


class Encoder(Counter):
    """Encodes what it is given, as the OTLP exporter does, and sends it nowhere."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return super().export(spans)


def rows() -> Iterator[Row]:
    """Compare with the same thread alone, and with a batch processor that exports as many spans."""
    figures = race(
        {
            "spangate": partial(prepare, "spangate"),
            "alone": prepare_alone,
            "BatchSpanProcessor, encoding": partial(prepare, "BatchSpanProcessor"),
        },
        LAPS,
    )
    for peer in ("alone", "BatchSpanProcessor, encoding"):
        yield Row(
            benchmark="stall",
            measured="longest wait of a busy thread",
            unit="ms",
            ours=median(figures["spangate"]),
            peer=peer,
            theirs=median(figures[peer]),
            limit=LIMIT_MS,
            bound="figure",
        )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    done = threading.Event()
    exporter = Counter() if name == "spangate" else Encoder()
    processor: SpanProcessor = (
        GateSpanProcessor(exporter, on_verdict=lambda _verdict: done.set())
        if name == "spangate"
        else BatchSpanProcessor(exporter, max_queue_size=2 * SPANS)
    )
    tracer = tracer_of(processor)

    def lap() -> float:
        done.clear()
        wanted = exporter.spans + SPANS
        wide_run(tracer, SPANS).end()
        waited = longest_wait(lambda: done.is_set() if name == "spangate" else exporter.spans >= wanted)
        processor.force_flush()
        return waited

    return lap


def prepare_alone() -> Lap:
    """Set up the thread alone."""

    def lap() -> float:
        end = time.perf_counter() + _ALONE_S
        return longest_wait(lambda: time.perf_counter() > end)

    return lap


def longest_wait(is_over: Callable[[], bool]) -> float:
    """Work in small steps until it is over, and return by how many milliseconds the longest exceeded the usual one."""
    steps: list[int] = []
    before = time.perf_counter_ns()
    while not is_over():
        for _ in _STEP:
            pass
        now = time.perf_counter_ns()
        steps.append(now - before)
        before = now
    return (max(steps) - median(steps)) / 1e6
