"""An agent that starts an MCP server over stdio and calls its tool, behind a gate with a receiver.

It writes what came of it to standard output. With ``--drop-context`` nothing is told in the metadata of requests. With
``--other-run`` the server answers another run meanwhile, with ``--outlive`` after the run that started it is judged.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters
from opentelemetry import context, trace
from opentelemetry.propagate import set_global_textmap
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import Gate, GateSpanProcessor, Verdict, default_gates, process
from spangate.gates import Policy

SERVER = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("mcp_server.py"))])
OUTLIVES = "--outlive" in sys.argv
GRACE_S = 0.1 if OUTLIVES else 5.0
"""A server that outlives its run is waited for in vain."""

exporter, verdicts, judged = InMemorySpanExporter(), list[Verdict](), threading.Semaphore(0)


def take(verdict: Verdict) -> None:
    """Keep a verdict, and tell who waits for it."""
    verdicts.append(verdict)
    judged.release()


provider = TracerProvider()
gates: list[Gate] = [*default_gates(), Policy(levels={"fingerprints.no_generations": "off"})]  # no model is asked here
gate = GateSpanProcessor(exporter, gates=gates, on_verdict=take, grace_s=GRACE_S, receiver=process.Receiver())
provider.add_span_processor(gate)
trace.set_tracer_provider(provider)
process.instrument()
if "--drop-context" in sys.argv:
    set_global_textmap(CompositePropagator([]))
tracer = trace.get_tracer("agent")


@contextmanager
def run(name: str) -> Iterator[None]:
    """Open a run of its own, whatever else is open."""
    words = {"gen_ai.operation.name": "invoke_agent"}
    with tracer.start_as_current_span(f"invoke_agent {name}", context.Context(), attributes=words):
        yield


async def grep(client: Client, pattern: str) -> None:
    """Call the tool, and see that it has answered."""
    answer = await client.call_tool("grep", {"pattern": pattern})
    assert pattern in str(answer.content)


async def main() -> None:
    """Call the tool twice in the run that starts the server, and perhaps once more from another run."""
    client = Client(SERVER)
    with run("one"):
        await client.__aenter__()
        await grep(client, "a")
        await grep(client, "b")
        if "--other-run" in sys.argv:
            with run("two"):
                await grep(client, "c")
        if not OUTLIVES:
            await client.__aexit__(None, None, None)
    if OUTLIVES:
        assert await asyncio.to_thread(judged.acquire, timeout=30.0)
        with run("two"):
            await grep(client, "c")
        assert await asyncio.to_thread(judged.acquire, timeout=30.0)
        await client.__aexit__(None, None, None)


asyncio.run(main())
provider.force_flush()
json.dump(
    {
        "said": {verdict.run_name: [[found.code, found.detail] for found in verdict.findings] for verdict in verdicts},
        "spans": [json.loads(span.to_json()) for span in exporter.get_finished_spans()],
    },
    sys.stdout,
)
