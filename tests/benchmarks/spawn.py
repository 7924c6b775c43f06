"""What it takes to start a program and wait for it, traced and not: wall time, the same program in turn."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, Final

from spangate import GateSpanProcessor, process
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import AGENT, Counter, provider_of

LIMIT = 1.05
STARTS = 300
PROGRAMS: Final[dict[str, tuple[Sequence[str], float | None]]] = {
    "Python that does nothing": ([sys.executable, "-c", "pass"], LIMIT),
    "the same, bare (-I -S)": ([sys.executable, "-I", "-S", "-c", "pass"], None),
    "/bin/true": (["/bin/true"], None),
}
"""The limit is on the least that an agent starts; the others do as little as an interpreter and a program can."""


def rows() -> Iterator[Row]:
    """Compare ``spangate.process.run`` with ``subprocess.run``, turn by turn: pairs tell what tracing adds."""
    provider = provider_of(GateSpanProcessor(Counter()))
    process.use_provider(provider)
    tracer = provider.get_tracer("benchmark")
    for name, (command, limit) in PROGRAMS.items():
        with tracer.start_as_current_span("invoke_agent coder", attributes=AGENT):
            turns = [(wall(process.run, command), wall(subprocess.run, command)) for _ in range(STARTS)]
        theirs = median(plain for _, plain in turns)
        yield Row(
            benchmark="spawn",
            measured=f"start to exit, {name}",
            unit="µs",
            ours=theirs + median(traced - plain for traced, plain in turns),
            peer="subprocess.run",
            theirs=theirs,
            limit=limit,
        )


def wall(run: Callable[..., Any], command: Sequence[str]) -> float:
    """Return the microseconds that it takes to run a program."""
    start = time.perf_counter()
    run(command)
    return (time.perf_counter() - start) * 1e6
