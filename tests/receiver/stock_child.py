"""A child of an agent run with the stock SDK: where its spans go, the environment says. It knows nothing of the gate.

It continues TRACEPARENT by the API's own propagator, records a tool call with spans below it, and ends.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

parser = argparse.ArgumentParser()
parser.add_argument("--grpc", action="store_true")
parser.add_argument("--ignore-context", action="store_true")
parser.add_argument("--no-flush", action="store_true", help="leave before anything was sent")
parser.add_argument("--grandchild", action="store_true", help="start this once more, below its own span")
parser.add_argument("--spans", type=int, default=1)
asked = parser.parse_args()

if asked.grpc:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Exporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Exporter  # type: ignore[assignment]

provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(BatchSpanProcessor(Exporter(), max_queue_size=200_000))
tracer = provider.get_tracer("stock_child")
carrier = {name: os.environ.get(name.upper(), "") for name in ("traceparent", "tracestate", "baggage")}
parent: Any = None if asked.ignore_context else extract(carrier)
attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lint"}
with tracer.start_as_current_span("execute_tool lint", parent, attributes=attributes):
    for _ in range(asked.spans):
        tracer.start_span("python work").end()
    if asked.grandchild:
        below: dict[str, str] = {}
        inject(below)
        environment = {**os.environ, **{name.upper(): value for name, value in below.items()}}
        subprocess.run([sys.executable, __file__], env=environment, check=True)
if asked.no_flush:
    os._exit(0)
provider.shutdown()
