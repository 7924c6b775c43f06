"""What it takes to receive what a program with a stock SDK sends: CPU time of the process that receives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from spangate import GateSpanProcessor, process
from spangate.process import Receiver
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import AGENT, Counter, provider_of
from tests.otlp_sink import grpc_sink, http_sink

LEAST_PER_S: Final = 40_000
SPANS: Final = 50_000
_CHILD: Final = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
if sys.argv[1] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
import os
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=100_000))
context = TraceContextTextMapPropagator().extract({"traceparent": os.environ.get("TRACEPARENT", "")})
tracer = provider.get_tracer("child")
for number in range(int(sys.argv[2])):
    with tracer.start_as_current_span("execute_tool search", context) as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "number": number})
provider.shutdown()
"""


def rows() -> Iterator[Row]:
    """Have a program send so many spans by either protocol, to the gate and to a receiver that only parses."""
    for protocol, sink in (("http", http_sink), ("grpc", grpc_sink)):
        with sink() as peer:
            told = {**os.environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": peer.endpoint}
            theirs = _per_s(partial(_send, subprocess.run, protocol, told))
            assert len(peer.spans) == SPANS
        gate = GateSpanProcessor(Counter(), receiver=Receiver())
        provider = provider_of(gate)
        process.use_provider(provider)
        with provider.get_tracer("benchmark").start_as_current_span("invoke_agent coder", attributes=AGENT):
            taken_in = _per_s(partial(_send, process.run, protocol, None))
        process.use_provider(None)
        settled = _per_s(provider.force_flush)
        provider.shutdown()
        lost = "" if gate.received == SPANS else f"only {gate.received:,} of {SPANS:,} came"
        yield _row(f"spans taken in by {protocol}", taken_in, theirs, LEAST_PER_S, lost)
        yield _row("the same, judged and released", 1 / (1 / taken_in + 1 / settled), theirs)


def _row(measured: str, ours: float, theirs: float, limit: float | None = None, note: str = "") -> Row:
    return Row(
        benchmark="receiver",
        measured=f"{measured}, in a second of CPU",
        unit="spans/s",
        ours=ours,
        peer="a receiver that parses and keeps",
        theirs=theirs,
        limit=limit,
        bound="least",
        note=note,
    )


def _per_s(send: Callable[[], object]) -> float:
    before = time.process_time()
    send()
    return SPANS / (time.process_time() - before)


def _send(run: Callable[..., object], protocol: str, environment: dict[str, str] | None) -> object:
    return run([sys.executable, "-c", _CHILD, protocol, str(SPANS)], check=True, env=environment)
