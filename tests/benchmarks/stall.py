"""How long a busy thread of the program is kept waiting while a run of 50,000 spans is judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
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


class Encoder(Counter):
    """Encodes what it is given, as the OTLP exporter does, and sends it nowhere."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return super().export(spans)


def rows() -> Iterator[Row]:
    """Compare with a batch processor that encodes as many spans."""
    peer = "BatchSpanProcessor, encoding"
    figures = race({name: partial(prepare, name) for name in ("spangate", peer)}, LAPS)
    yield Row(
        benchmark="stall",
        measured=f"longest wait of a busy thread, {SPANS:,} spans",
        unit="ms",
        ours=median(figures["spangate"]),
        peer=peer,
        theirs=median(figures[peer]),
        limit=LIMIT_MS,
        bound="figure",
    )


def prepare(name: str) -> Lap:
    """Set up a contestant."""
    exporter = Counter() if name == "spangate" else Encoder()
    processor = GateSpanProcessor(exporter) if name == "spangate" else BatchSpanProcessor(exporter, 2 * SPANS)
    tracer = tracer_of(processor)

    def lap() -> float:
        wanted = exporter.spans + SPANS
        wide_run(tracer, SPANS).end()
        return longest_wait(lambda: exporter.spans >= wanted)

    return lap


def longest_wait(is_over: Callable[[], bool]) -> float:
    """Work in small steps until it is over, and return the longest wait in milliseconds.

    What counts is the processor time that other threads of this process took meanwhile: that other processes had the
    processor is not their doing.
    """
    longest = 0
    others = _others_ns()
    while not is_over():
        for _ in _STEP:
            pass
        before, others = others, _others_ns()
        longest = max(longest, others - before)
    return longest / 1e6


def _others_ns() -> int:
    return time.process_time_ns() - time.thread_time_ns()
