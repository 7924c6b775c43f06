"""A program of a run, with a gate of its own: records a tool, starts another program, and tells what it was told."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spangate
from spangate import process

verdicts: list[spangate.Verdict] = []
provider = TracerProvider()
provider.add_span_processor(spangate.GateSpanProcessor(InMemorySpanExporter(), on_verdict=verdicts.append))
trace.set_tracer_provider(provider)
process.instrument()
spangate.attach_parent()
ASKED = [sys.executable, "-c", "import os; print(os.environ['SPANGATE_RUN_ID'])"]


def grandchild() -> str:
    """Return the run id that a program of this one finds in its environment."""
    return subprocess.run(ASKED, check=True, capture_output=True, text=True).stdout.strip()


with provider.get_tracer("app").start_as_current_span("invoke_agent plain") as plain:
    plain.set_attribute("gen_ai.operation.name", "invoke_agent")
    outside = grandchild()
with spangate.run("a part of it", max_iters=1) as run:
    for it in run.iterations():
        with it.tool("edit"):
            inside = grandchild()
        run.halt("done")
provider.shutdown()
told = {
    "environment": os.environ.get("SPANGATE_RUN_ID"),
    "run": run.run_id,
    "grandchildren": [outside, inside],
    "verdicts": [[verdict.verdict, verdict.run_id] for verdict in verdicts],
}
json.dump(told, sys.stdout)
