"""An agent that starts an MCP server over stdio and calls its tool, behind a gate with a receiver.

It writes what came of it to standard output. With ``--drop-context`` nothing is told in the metadata of requests.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from opentelemetry import context, trace
from opentelemetry.propagate import set_global_textmap
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor, Verdict, process

SERVER = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("mcp_server.py"))])

exporter, verdicts = InMemorySpanExporter(), list[Verdict]()
provider = TracerProvider()
provider.add_span_processor(GateSpanProcessor(exporter, on_verdict=verdicts.append, receiver=process.Receiver()))
trace.set_tracer_provider(provider)
process.instrument()
if "--drop-context" in sys.argv:
    set_global_textmap(CompositePropagator([]))
tracer = trace.get_tracer("agent")


async def ask(name: str, client: Client) -> None:
    """Call the tool in a run of this name."""
    with tracer.start_as_current_span(f"invoke_agent {name}", attributes={"gen_ai.operation.name": "invoke_agent"}):
        await client.call_tool("grep", {"pattern": name})


async def main() -> None:
    """Call the tool twice in the run that starts the server, and once more from another run meanwhile."""
    with tracer.start_as_current_span("invoke_agent one", attributes={"gen_ai.operation.name": "invoke_agent"}):
        async with Client(SERVER) as client:
            await client.call_tool("grep", {"pattern": "a"})
            await client.call_tool("grep", {"pattern": "b"})
            if "--other-run" in sys.argv:
                token = context.attach(context.Context())
                await ask("two", client)
                context.detach(token)


asyncio.run(main())
provider.force_flush()
json.dump(
    {
        "said": {verdict.run_name: sorted(finding.code for finding in verdict.findings) for verdict in verdicts},
        "spans": [json.loads(span.to_json()) for span in exporter.get_finished_spans()],
    },
    sys.stdout,
)
