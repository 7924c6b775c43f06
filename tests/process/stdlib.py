"""Runs the interpreter's own tests of ``subprocess`` inside a traced agent run, and prints what failed as JSON.

``python stdlib.py [MODULE…]`` in a process of its own: the tests change signals, the environment and open files.
"""

from __future__ import annotations

import json
import sys
import unittest

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor, process


def main(names: list[str]) -> int:
    """Run the tests of the modules."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(GateSpanProcessor(exporter, grace_s=0.1))
    trace.set_tracer_provider(provider)
    process.instrument()
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    agent = {"gen_ai.operation.name": "invoke_agent"}
    with provider.get_tracer("stdlib").start_as_current_span("tests", attributes=agent):
        result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    process.uninstrument()
    provider.shutdown()
    failed = sorted({test.id().partition(" ")[0] for test, _ in [*result.failures, *result.errors]})
    spans = len(exporter.get_finished_spans())
    json.dump({"run": result.testsRun, "failed": failed, "spans": spans}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["test.test_subprocess"]))
