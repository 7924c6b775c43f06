"""Judge in CI what was recorded before: by a collector that writes to a file, or by the program itself, as here.

`spangate check` reads OTLP, as JSON or as protobuf, and its exit code is the answer: 0 if every run may be believed.
"""

import subprocess
import tempfile
from pathlib import Path

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

MESSAGES = '[{"role": "user", "parts": [{"type": "text", "content": "What shall we cook?"}]}]'
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
tracer = provider.get_tracer("kitchen")


def cook(input_tokens: int) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
        call = tracer.start_span("chat small", attributes={"gen_ai.operation.name": "chat"})
        call.set_attributes({"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": 3})
        call.set_attributes({"gen_ai.request.model": "small", "gen_ai.input.messages": MESSAGES})
        call.end()


def check(recording: Path) -> int:
    recording.write_bytes(encode_spans(exporter.get_finished_spans()).SerializeToString())
    policy = Path(__file__).with_name("policy.toml")
    done = subprocess.run(["spangate", "check", "--quiet", "--policy", policy, recording], check=False)  # noqa: S607
    return done.returncode


with tempfile.TemporaryDirectory() as directory:
    recording = Path(directory) / "night.otlp"
    cook(input_tokens=12)
    print("exit code", check(recording), flush=True)
    cook(input_tokens=5_000)
    print("exit code", check(recording), flush=True)
