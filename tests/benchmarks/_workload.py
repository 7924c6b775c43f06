"""Agent runs as an instrumentation records them, through the SDK, and exporters that do as little as they can."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Tracer

Content: TypeAlias = tuple[str, str]
"""The attributes in which a model call holds what was sent and what was answered."""
MESSAGES: Final[Content] = ("gen_ai.input.messages", "gen_ai.output.messages")
OPAQUE: Final[Content] = ("app.request", "app.response")
"""As many bytes where no convention looks: by default instrumentations record no messages."""
RUN_SPANS: Final = 20
TURNS: Final = 10
_MODEL: Final = "gpt-4o"
_PROSE: Final = "The agent read the page, found two numbers that disagree and asked for a third. " * 13
GENERATION: Final = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": _MODEL,
}
AGENT: Final = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "researcher"}
TOOL: Final = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


class Counter(SpanExporter):
    """Counts what it is given, after ``pause_s`` seconds a call."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.spans = 0
        self._pause_s = pause_s

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._pause_s:
            time.sleep(self._pause_s)
        self.spans += len(spans)
        return SpanExportResult.SUCCESS


def provider_of(processor: SpanProcessor) -> TracerProvider:
    """Return a provider with this one processor."""
    provider = TracerProvider(resource=Resource.create({"service.name": "benchmark"}), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def tracer_of(processor: SpanProcessor) -> Tracer:
    """Return a tracer of a provider with this one processor."""
    return provider_of(processor).get_tracer("opentelemetry.instrumentation.genai.openai", "1.0")


def agent_run(tracer: Tracer, content: Content = MESSAGES) -> None:
    """Record a healthy run of 20 spans: an agent that asks its model ten times and searches in between."""
    with tracer.start_as_current_span("invoke_agent researcher", attributes=AGENT):
        for turn in range(TURNS):
            generation(tracer, turn, content)
            if turn < TURNS - 1:
                with tracer.start_as_current_span("execute_tool search", attributes=TOOL) as span:
                    span.set_attribute("gen_ai.tool.call.id", f"call_{turn}")
                    span.set_attribute("gen_ai.tool.call.result", "42 results")


def model_run(tracer: Tracer) -> None:
    """Record a healthy run of 20 spans: an agent that asks its model 19 times and needs no tool."""
    with tracer.start_as_current_span("invoke_agent researcher", attributes=AGENT):
        for _ in range(RUN_SPANS - 1):
            generation(tracer, TURNS - 1, MESSAGES)


def generation(tracer: Tracer, turn: int, content: Content) -> None:
    """Record a model call: ten attributes, two of 1 KiB, three of them there at the start."""
    sent, answer = content
    with tracer.start_as_current_span(f"chat {_MODEL}", kind=SpanKind.CLIENT, attributes=GENERATION) as span:
        span.set_attribute(sent, SENT[turn])
        span.set_attribute("gen_ai.response.model", "gpt-4o-2024-08-06")
        span.set_attribute("gen_ai.response.id", f"chatcmpl-{turn}")
        span.set_attribute("gen_ai.usage.input_tokens", 1200 + turn)
        span.set_attribute("gen_ai.usage.output_tokens", 80)
        span.set_attribute("gen_ai.response.finish_reasons", ("tool_calls",))
        span.set_attribute(answer, ANSWERS[turn])


def wide_run(tracer: Tracer, spans: int) -> Any:
    """Record a run of ``spans`` small spans and return its root, which is still open."""
    root = tracer.start_span("invoke_agent researcher", attributes=AGENT)
    with trace.use_span(root):
        for _ in range(spans - 1):
            tracer.start_span("execute_tool search", attributes=TOOL).end()
    return root


def _messages(turn: int) -> tuple[str, str]:
    call = {"type": "tool_call", "id": f"call_{turn}", "name": "search", "arguments": {"query": "why"}}
    earlier = {"type": "tool_call_response", "id": f"call_{turn - 1}", "response": "42 results"}
    sent: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": ""}]}]
    if turn:
        sent.append({"role": "tool", "parts": [earlier]})
    parts = [{"type": "text", "content": ""}, *([call] if turn < TURNS - 1 else [])]
    answer = [{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]
    return _filled(sent), _filled(answer)


def _filled(messages: list[dict[str, Any]]) -> str:
    """Return the messages as 1 KiB of JSON."""
    missing = 1024 - len(json.dumps(messages))
    messages[0]["parts"][0]["content"] = _PROSE[:missing]
    return json.dumps(messages)


SENT: Final[Sequence[str]] = [_messages(turn)[0] for turn in range(TURNS)]
ANSWERS: Final[Sequence[str]] = [_messages(turn)[1] for turn in range(TURNS)]
