"""A coding agent whose tools are programs, one in Python and one in Node.js: run it behind a gate.

    spangate run -- python examples/coding_agent.py
    spangate run -- python examples/coding_agent.py --ignore-context

The second time its linter does not continue the trace that it is told of, and the run is refused. The model is a
script. The tests are in Node.js if its SDK is there: npm install --prefix examples/coding_agent_tools.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from spangate import attach_parent, process

TOOLS = Path(__file__).with_name("coding_agent_tools")
COMMANDS = {"lint": [sys.executable, TOOLS / "lint.py", *sys.argv[1:]]}
if (TOOLS / "node_modules").is_dir():
    COMMANDS["test"] = [shutil.which("node") or "node", TOOLS / "test.js"]

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # to where the environment says
trace.set_tracer_provider(provider)
process.instrument()  # every program is a span, and is told the context
attach_parent()  # continue what spangate run has begun
tracer = trace.get_tracer("coding_agent")
messages: list[dict[str, object]] = []


def say(role: str, **part: str) -> None:
    messages.append({"role": role, "parts": [part]})


def ask(**answer: str) -> None:
    known = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted", "gen_ai.provider.name": "script"}
    with tracer.start_as_current_span("chat scripted", kind=trace.SpanKind.CLIENT, attributes=known) as span:
        span.set_attribute("gen_ai.input.messages", json.dumps(messages))
        say("assistant", **answer)
        span.set_attribute("gen_ai.output.messages", json.dumps(messages[-1:]))
        span.set_attributes({"gen_ai.usage.input_tokens": 100 * len(messages), "gen_ai.usage.output_tokens": 20})


with tracer.start_as_current_span("invoke_agent coder", attributes={"gen_ai.operation.name": "invoke_agent"}):
    say("user", type="text", content="Make it pass.")
    for name, command in COMMANDS.items():
        ask(type="tool_call", id=f"call_{name}", name=name, arguments="{}")
        with tracer.start_as_current_span(f"execute_tool {name}") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attributes({"gen_ai.tool.name": name, "gen_ai.tool.call.id": f"call_{name}"})
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        say("tool", type="tool_call_response", id=f"call_{name}", response=done.stdout)
    ask(type="text", content="All done.")
print(f"All done: {', '.join(COMMANDS)}.")
