"""A child of an agent run: continues its parent's trace, records one span, and prints where that stands."""

from __future__ import annotations

import json
import sys

from opentelemetry import baggage
from opentelemetry.sdk.trace import TracerProvider

import spangate

attached = spangate.attach_parent()
tracer = TracerProvider(shutdown_on_exit=False).get_tracer("child")
with tracer.start_as_current_span("work") as span:
    parent = getattr(span, "parent", None)
    own = span.get_span_context()
    told = {
        "attached": attached,
        "trace_id": f"{own.trace_id:032x}",
        "parent_id": None if parent is None else f"{parent.span_id:016x}",
        "is_remote": None if parent is None else parent.is_remote,
        "baggage": dict(baggage.get_all()),
    }
json.dump(told, sys.stdout)
