"""The linter of the coding agent: any program with an OpenTelemetry SDK, which knows nothing of a gate."""

import os
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
parent = None if "--ignore-context" in sys.argv else extract({"traceparent": os.environ.get("TRACEPARENT", "")})
with trace.get_tracer("lint").start_as_current_span("lint prices.py", parent):
    print("1 file is clean")
