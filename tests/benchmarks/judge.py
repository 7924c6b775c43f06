"""What judging costs a span: records read from SDK spans, their roles, and the gates, for runs of any size."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial
from statistics import fmean

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from spangate._codes import DEFAULT_LEVELS
from spangate._records import Finding
from spangate._run import Run
from spangate._settle.look import read
from spangate.gates import default_gates
from tests.benchmarks._contest import Lap, Prepare, calm, races
from tests.benchmarks._long_run import long_run
from tests.benchmarks._rows import Row

LIMIT_US = 10
GATES_LIMIT_US = 8
GROWTH = 11
SMALL, LARGE = 100_000, 1_000_000
LAPS = 4
HEATS = 3
_ENCODED = 10_000


def rows() -> Iterator[Row]:
    """Hold the large run to a limit, and the growth from the small one; compare with encoding a span for export.

    They take turns, so that a slow minute is slow for all. The first lap of each is to warm up: a machine that has
    never given a process so much memory takes its time for it. A lap of small runs has as many of them as make up the
    large one: a short lap would find a calm moment, or the garbage collector idle, where a long one never does.
    """
    contestants: dict[str, Prepare] = {
        "small": partial(prepare, SMALL, runs=LARGE // SMALL),
        "large": partial(prepare, LARGE),
        "gates, large": partial(prepare, LARGE, only_gates=True),
        "small, with messages": partial(prepare, SMALL, with_messages=True),
        "encoder": prepare_encoder,
    }
    figures = {name: calm(laps) for name, laps in races(contestants, LAPS, HEATS).items()}
    named = {
        "large": (f"a run of {LARGE:,}", LIMIT_US),
        "gates, large": ("all gates without the reading", GATES_LIMIT_US),
        "small": (f"a run of {SMALL:,}", None),
        "small, with messages": ("with 2 KiB of messages a generation", None),
    }
    for name, (what, limit) in named.items():
        yield Row(
            benchmark="judge",
            measured=f"CPU a span, {what}",
            unit="µs",
            ours=figures[name],
            peer="OTLP encoder",
            theirs=figures["encoder"],
            limit=limit,
            bound="figure",
        )
    yield Row(
        benchmark="judge",
        measured=f"CPU of {LARGE:,} spans over {SMALL:,}",
        unit="s",
        ours=figures["large"] * LARGE / 1e6,
        peer=f"{SMALL:,} spans",
        theirs=figures["small"] * SMALL / 1e6,
        limit=GROWTH,
    )


def prepare(spans: int, *, runs: int = 1, with_messages: bool = False, only_gates: bool = False) -> Lap:
    """Set up a run, to be judged by the default gates ``runs`` times a lap."""
    sources = list(itertools.islice(long_run(with_messages=with_messages), spans))
    gates = default_gates()

    def judge() -> float:
        start = time.thread_time_ns()
        look = read(sources)
        run = Run("benchmark", look.spans[0], look.spans)
        if only_gates:
            start = time.thread_time_ns()
        findings = [finding for gate in gates for finding in gate(run)]
        used = time.thread_time_ns() - start
        failures = [finding for finding in findings if _fails(finding)]
        if failures:
            raise AssertionError(f"the run is meant to be healthy: {failures[:3]}")
        return used / 1000 / spans

    return lambda: fmean(judge() for _ in range(runs))


def _fails(finding: Finding) -> bool:
    return (finding.level or DEFAULT_LEVELS[finding.code]) == "fail"


def prepare_encoder() -> Lap:
    """Set up the peer: what the OTLP exporter does with a span before it is sent."""
    sources = list(itertools.islice(long_run(with_messages=False), _ENCODED))

    def lap() -> float:
        start = time.thread_time_ns()
        encode_spans(sources).SerializeToString()
        return (time.thread_time_ns() - start) / 1000 / _ENCODED

    return lap
