"""A child of an agent run with a gate of its own, which is set up as if it ran alone."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter

import spangate
from spangate import process

parser = argparse.ArgumentParser()
parser.add_argument("--leak", action="store_true", help="leave a span open")
parser.add_argument("--grandchild", action="store_true", help="start this once more")
parser.add_argument("--fork", action="store_true", help="record in a forked child, too")
parser.add_argument("--plain", action="store_true", help="no gate, but traced programs")
parser.add_argument("--own-environment", action="store_true", help="give the grandchild an environment of its own")
parser.add_argument("--exit", type=int, default=0)
asked = parser.parse_args()

provider = TracerProvider()
if not asked.plain:
    # What a gate that judges here would write to standard output, for the test to see.
    provider.add_span_processor(spangate.GateSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)
process.instrument()
spangate.attach_parent()
tracer = provider.get_tracer("member")
if asked.leak:
    tracer.start_span("leaked")
with tracer.start_as_current_span("execute_tool edit", attributes={"gen_ai.operation.name": "execute_tool"}):
    if asked.grandchild:
        own = {"PATH": os.environ["PATH"], "HOME": "/"} if asked.own_environment else None
        subprocess.run([sys.executable, __file__], check=True, env=own)
    if asked.fork and os.fork() == 0:
        tracer.start_span("forked").end()
        provider.force_flush()
        os._exit(0)
    if asked.fork:
        os.wait()
sys.exit(asked.exit)
