"""What children do in the tests of ``multiprocessing``: record a span of their own, and say where it stands."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from multiprocessing.context import ForkProcess, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Any

from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import TracerProvider

METHODS = ("fork", "spawn", "forkserver")
NAMES = ("TRACEPARENT", "BAGGAGE", "SPANGATE_RUN_ID", "SPANGATE_INVOCATION_ID", "RUN_ID", "INVOCATION_ID")


def stand(_: object = None) -> dict[str, Any]:
    """Record a span with a provider of its own, and return where it stands and what the environment says."""
    with TracerProvider(shutdown_on_exit=False).get_tracer("child").start_as_current_span("work") as span:
        parent = getattr(span, "parent", None)
        return {
            "trace_id": span.get_span_context().trace_id,
            "parent_id": None if parent is None else parent.span_id,
            "is_remote": None if parent is None else parent.is_remote,
            "baggage": dict(baggage.get_all()),
            "environment": {name: os.environ[name] for name in (*NAMES, "traceparent") if name in os.environ},
        }


def tell(pipe: Any) -> None:
    """Say where a span of this process stands."""
    pipe.send(stand())


def leave(code: int) -> None:
    """End with a code."""
    sys.exit(code)


def fail() -> None:
    """End with an exception that the test does not want to see."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  it is to the end
    raise RuntimeError


def wait() -> None:
    """Wait to be killed."""
    time.sleep(60)


def kill_itself(signal: int) -> None:
    """End by a signal."""
    os.kill(os.getpid(), signal)
    wait()


def add(first: int, second: int = 0) -> int:
    """Add two numbers."""
    return first + second


def divide(number: int) -> float:
    """Divide 1 by a number."""
    return 1 / number


def is_traced(_: object = None) -> bool:
    """Say whether a span is current here."""
    return trace.get_current_span().get_span_context().is_valid


def start(process: BaseProcess) -> int | None:
    """Start a process, and return its exit code."""
    process.start()
    process.join()
    return process.exitcode


class _Telling:
    """What a process with a ``run`` of its own does."""

    def __init__(self, pipe: Any) -> None:
        super().__init__()
        self.pipe = pipe

    def run(self) -> None:
        tell(self.pipe)
        sys.exit(5)


class Teller(_Telling, ForkProcess):
    """Such a process, forked."""


class SpawnedTeller(_Telling, SpawnProcess):
    """Such a process, in a new interpreter."""


def traces(told: Iterable[dict[str, Any]]) -> set[int]:
    """Return the traces of those who told where they stand."""
    return {one["trace_id"] for one in told}
