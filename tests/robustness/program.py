"""Programs that need a process of their own: ``python -m tests.robustness.program NAME``.

What is exported goes to standard output, one line of JSON a span; standard error is left to what nobody expects.
"""

from __future__ import annotations

import gc
import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from spangate import GateSpanProcessor

AGENT = {"gen_ai.operation.name": "invoke_agent"}
TOOL = {"gen_ai.operation.name": "execute_tool"}


class Lines(SpanExporter):
    """Writes spans as lines, each with the process that exported it; takes ``pause_s`` a call, holding a lock."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._lock:
            time.sleep(self.pause_s)
            for span in spans:
                say(name=span.name, trace=span.context.trace_id, **verdict_of(span))
        return SpanExportResult.SUCCESS


def verdict_of(span: ReadableSpan) -> dict[str, Any]:
    attributes = span.attributes or {}
    found: Any = attributes.get("spangate.findings", ())
    return {"verdict": attributes.get("spangate.verdict"), "findings": list(found)}


def say(**facts: Any) -> None:
    """Write a line at once, whatever other processes write."""
    os.write(1, (json.dumps({"pid": os.getpid(), **facts}) + "\n").encode())


def gated(exporter: SpanExporter | None = None, **settings: Any) -> tuple[GateSpanProcessor, Tracer]:
    logging.getLogger("spangate").setLevel(logging.CRITICAL)  # verdicts are told to standard error otherwise
    gate = GateSpanProcessor(Lines() if exporter is None else exporter, **{"grace_s": 0.05, **settings})
    provider = TracerProvider()
    provider.add_span_processor(gate)
    trace.set_tracer_provider(provider)
    return gate, provider.get_tracer("test")


def run(tracer: Tracer, name: str, tools: int = 1) -> None:
    """Record a healthy run."""
    with tracer.start_as_current_span(name, attributes=AGENT):
        for number in range(tools):
            tracer.start_span(f"{name}/{number}", attributes=TOOL).end()


def end_of_main() -> None:
    """Leave a run open at the end of the program, after one that is over."""
    _, tracer = gated()
    run(tracer, "over")
    tracer.start_span("open", attributes=AGENT)


def sys_exit() -> None:
    """Leave the program from within a run, and a span open in it."""
    _, tracer = gated()
    with tracer.start_as_current_span("left", attributes=AGENT):
        tracer.start_span("open", attributes=TOOL)
        sys.exit(3)


def unhandled() -> None:
    """Let an exception end the program, the run with it, and leave another run open."""
    _, tracer = gated()
    tracer.start_span("open", attributes=AGENT)
    with tracer.start_as_current_span("failed", attributes=AGENT):
        raise RuntimeError("the agent's own")


def daemon_threads() -> None:
    """Leave while daemon threads are in the middle of runs."""
    _, tracer = gated()
    busy = threading.Semaphore(0)

    def work(name: str) -> None:
        while True:
            run(tracer, name, 3)
            busy.release()

    for number in range(2):
        threading.Thread(target=work, args=(f"daemon {number}",), daemon=True).start()
    for _ in range(50):
        busy.acquire()


def never_used() -> None:
    """Have a gate, and no span."""
    gated()


def first_span_at_exit() -> None:
    """Record the first run of the program when it is leaving already, and threads can no longer start."""
    import atexit

    _, tracer = gated()
    atexit.register(run, tracer, "late", 2)


def terminated() -> None:
    """Shut down when the signal to terminate comes, in the middle of a busy loop of runs."""
    _, tracer = gated()

    def stop(_number: int, _frame: object) -> None:
        trace.get_tracer_provider().shutdown()  # type: ignore[attr-defined]
        say(event="shut down")
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        run(tracer, "run", 5)


def fork_open_run() -> None:
    """Fork in the middle of a run; the child leaves through the run's own ``with`` block."""
    gate, tracer = gated()
    with tracer.start_as_current_span("parent", attributes=AGENT):
        tracer.start_span("before", attributes=TOOL).end()
        inherited = tracer.start_span("inherited", attributes=TOOL)
        child = os.fork()
        if not child:
            run(tracer, "child", 2)
            inherited.end()
            sys.exit(0)
        os.waitpid(child, 0)
        inherited.end()
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses)


def fork_busy() -> None:
    """Fork again and again while the threads of the gate judge and export, and other threads start and end spans."""
    gate, tracer = gated(Lines(0.005))
    stop = threading.Event()
    others = [threading.Thread(target=_runs_until, args=(tracer, stop, f"other {number}")) for number in range(2)]
    for other in others:
        other.start()
    for number in range(12):
        run(tracer, f"parent {number}", 2)
        child = os.fork()
        if not child:
            _in_child(gate, tracer, number)
        _, status = os.waitpid(child, 0)
        say(event="child", status=status)
    stop.set()
    for other in others:
        other.join()
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses)


def _in_child(gate: GateSpanProcessor, tracer: Tracer, number: int) -> None:
    gate._exporters[0]._lock = threading.Lock()  # type: ignore[attr-defined]  # the exporter's own, and not the gate's business
    run(tracer, f"child {number}", 2)
    say(event="child flushed", complete=gate.force_flush(10_000), losses=gate.losses)
    os._exit(0)


def _runs_until(tracer: Tracer, stop: threading.Event, name: str) -> None:
    while not stop.is_set():
        run(tracer, name, 2)
        time.sleep(0.001)


_pool_tracer: Tracer | None = None


def fork_pool() -> None:
    """Work in a pool of forked processes, below a run of the parent."""
    gate, tracer = gated()
    globals().update(_pool_tracer=tracer)
    with (
        tracer.start_as_current_span("parent", attributes=AGENT),
        multiprocessing.get_context("fork").Pool(2) as pool,
    ):
        pool.map(_task, range(6))
        pool.close()
        pool.join()
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses)


def _task(number: int) -> None:
    assert _pool_tracer is not None
    run(_pool_tracer, f"task {number}", 1)
    trace.get_tracer_provider().force_flush()  # type: ignore[attr-defined]


def finalizers() -> None:
    """Have spans end in finalizers, which the garbage collector runs wherever it pleases, within the gate too."""
    gate, tracer = gated()
    gc.set_threshold(3, 2, 2)
    for number in range(600):
        with tracer.start_as_current_span(f"run {number}", attributes=AGENT):
            stream = _stream(tracer)
            next(stream)
            cycle: list[Any] = [stream]
            cycle.append(cycle)
            del stream, cycle
    gc.collect()
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses)


def _stream(tracer: Tracer) -> Iterator[int]:
    span = tracer.start_span("stream", attributes=TOOL)
    try:
        yield 1
        yield 2
    finally:
        tracer.start_span("close", context=trace.set_span_in_context(span)).end()
        span.end()


def signals() -> None:
    """Have a signal handler start and end spans, and flush, in the middle of whatever goes on."""
    gate, tracer = gated()
    handled = 0

    def handler(_number: int, _frame: object) -> None:
        nonlocal handled
        handled += 1
        run(tracer, "handler", 1)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while handled < 300:
        run(tracer, "main", 3)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses, handled=handled)


def wide_run(spans: int, max_bytes: int) -> None:
    """Record one run of very many small spans."""
    gate, tracer = gated(max_held_bytes=max_bytes)
    before, slowest = _resident(), 0.0
    with tracer.start_as_current_span("wide", attributes=AGENT):
        for number in range(spans):
            start = time.perf_counter()
            tracer.start_span("tool", attributes={**TOOL, "number": number}).end()
            slowest = max(slowest, time.perf_counter() - start)
    complete = gate.force_flush()
    say(
        event="flushed",
        complete=complete,
        losses=gate.losses,
        withheld=gate._telemetry.withheld,
        grown=_highest() - before,
        slowest=slowest,
        held=repr(gate._buffer),
    )


def leaks(spans: int, max_bytes: int) -> None:
    """Start very many spans and end none."""
    gate, tracer = gated(max_held_bytes=max_bytes)
    before = _resident()
    for number in range(spans):
        tracer.start_span("leak", attributes=AGENT if number % 3 == 0 else None)
    held = gate._buffer.count_spans()
    complete = gate.force_flush()
    say(event="flushed", complete=complete, losses=gate.losses, grown=_highest() - before, held=held)


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  no file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _highest() -> int:
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123  no file of ours
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def seeded() -> None:
    """Seed the generator that the SDK takes its ids from before every run, as evaluations do."""
    gate, tracer = gated()
    for number in range(3):
        random.seed(7)
        run(tracer, f"run {number}", 2)
        gate.force_flush()
    say(event="flushed", complete=gate.force_flush(), losses=gate.losses)


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (
        end_of_main,
        sys_exit,
        unhandled,
        daemon_threads,
        never_used,
        first_span_at_exit,
        terminated,
        fork_open_run,
        fork_busy,
        fork_pool,
        finalizers,
        signals,
        wide_run,
        leaks,
        seeded,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*map(int, sys.argv[2:]))
