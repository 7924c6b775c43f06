"""How long a busy thread of the program is kept waiting while a run of 50,000 spans is judged."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from spangate import GateSpanProcessor
from tests.benchmarks._contest import Lap, Prepare, race
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import Counter, tracer_of, wide_run

LIMIT_MS = 5
SPANS = 50_000
LAPS = 7
_STEP = range(1500)
"""Some 50 µs of Python."""
_OLDEST: Final = 2
_PEER: Final = "BatchSpanProcessor, encoding"


class Encoder(Counter):
    """Encodes what it is given, as the OTLP exporter does, and sends it nowhere."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return super().export(spans)


def rows() -> Iterator[Row]:
    """Compare with a batch processor that encodes as many spans.

    The limit is on what judging keeps from others. A full collection of the garbage collector goes through all that
    the program holds, in whichever thread makes one object too many, recording or judging; what it adds is a row of
    its own.
    """
    waits = f"longest wait of a busy thread, {SPANS:,} spans"
    yield _row(waits, _race(with_full_collections=False), LIMIT_MS)
    yield _row("the same, full garbage collections counted", _race(with_full_collections=True), None)


def _race(*, with_full_collections: bool) -> Mapping[str, Sequence[float]]:
    contestants: Mapping[str, Prepare] = {
        name: partial(prepare, name, with_full_collections=with_full_collections) for name in ("spangate", _PEER)
    }
    return race(contestants, LAPS)


def _row(measured: str, waits: Mapping[str, Sequence[float]], limit: float | None) -> Row:
    return Row(
        benchmark="stall",
        measured=measured,
        unit="ms",
        ours=median(waits["spangate"]),
        peer=_PEER,
        theirs=median(waits[_PEER]),
        limit=limit,
        bound="figure",
    )


def prepare(name: str, *, with_full_collections: bool) -> Lap:
    """Set up a contestant."""
    exporter = Counter() if name == "spangate" else Encoder()
    processor = GateSpanProcessor(exporter) if name == "spangate" else BatchSpanProcessor(exporter, 2 * SPANS)
    tracer = tracer_of(processor)
    collections = FullCollections()
    if not with_full_collections:
        gc.callbacks.append(collections.told)

    def lap() -> float:
        wanted = exporter.spans + SPANS
        wide_run(tracer, SPANS).end()
        return longest_wait(lambda: exporter.spans >= wanted, collections)

    return lap


class FullCollections:
    """How long the garbage collector's full collections took, if it is told of them."""

    def __init__(self) -> None:
        self.ns = 0
        self._start: int | None = None

    def told(self, phase: str, info: Mapping[str, Any]) -> None:
        """Take notice, as one of ``gc.callbacks``."""
        if info["generation"] != _OLDEST:
            return
        if phase == "start":
            self._start = time.thread_time_ns()
        elif self._start is not None:
            self.ns += time.thread_time_ns() - self._start
            self._start = None

    @property
    def is_running(self) -> bool:
        """Whether one has begun and not been seen to end: its time is not known yet."""
        return self._start is not None


def longest_wait(is_over: Callable[[], bool], collections: FullCollections) -> float:
    """Work in small steps until it is over, and return the longest wait in milliseconds.

    What counts is the processor time that other threads of this process took meanwhile, but for ``collections``: that
    other processes had the processor is not their doing.
    """
    longest = 0
    others = _others_ns() - collections.ns
    while not is_over():
        for _ in _STEP:
            pass
        if collections.is_running:
            continue
        before, others = others, _others_ns() - collections.ns
        longest = max(longest, others - before)
    return longest / 1e6


def _others_ns() -> int:
    return time.process_time_ns() - time.thread_time_ns()
