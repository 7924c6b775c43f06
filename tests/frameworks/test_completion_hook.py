"""The completion hook, called as OpenTelemetry's GenAI utilities call it, with whatever instrumentations hand over."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import pytest
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util.genai.completion_hook import CompletionHook as Hook
from opentelemetry.util.genai.completion_hook import load_completion_hook
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import BlobPart, InputMessage, TextPart, ToolCallRequestPart

from spangate import GateSpanProcessor
from spangate._canonical import canonical_hash
from spangate._completion_hook import CompletionHook
from tests.frameworks.gated import Gated


def loaded() -> Hook:
    """Have the hook found by its entry point."""
    with mock.patch.dict(os.environ, {"OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "spangate"}):
        hook = load_completion_hook()
    assert isinstance(getattr(hook, "_wrapped", None), CompletionHook)
    return hook


def asked(gated: Gated, *parts: Any, **more: Any) -> dict[str, Any]:
    """Record one model call, and return what is written on its released span."""
    handler = TelemetryHandler(tracer_provider=gated.provider, completion_hook=loaded())
    with handler.inference("openai", request_model="m") as call:
        call.input_messages = [InputMessage(role="user", parts=[*parts])]
        for name, value in more.items():
            setattr(call, name, value)
    return dict(gated.exported()[-1].attributes or {})


def test_a_call_is_stamped_and_nothing_of_it_written(gated: Gated) -> None:
    known = asked(gated, TextPart("u"), system_instruction=[TextPart("s")], temperature=0)
    assert known["fingerprint.source"] == "hook"
    assert known["prompt.hash"] == canonical_hash({"system": "s", "user": "u", "tools": None})
    assert known["gen_ai.request.model"] == "m"
    assert "gen_ai.input.messages" not in known


def test_bytes_are_hashed_as_they_would_be_written(gated: Gated) -> None:
    blob = BlobPart("image/png", "image", b"\x00\xff")
    capture = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}
    hooked = asked(gated, TextPart("u"), blob)
    with mock.patch.dict(os.environ, capture):
        handler = TelemetryHandler(tracer_provider=gated.provider)
        with handler.inference("openai", request_model="m") as call:
            call.input_messages = [InputMessage(role="user", parts=[TextPart("u"), blob])]
    recorded = dict(gated.exported()[-1].attributes or {})
    assert recorded["fingerprint.source"] == "attributes"
    assert recorded["prompt.hash"] == hooked["prompt.hash"]


UNREADABLE: dict[str, tuple[Any, str]] = {
    "a set": ({1}, "it holds what JSON does not have, such as a set or an object"),
    "NaN": (float("nan"), "it holds NaN, infinity or itself, which JSON does not have"),
    "an object": (object(), "it holds what JSON does not have, such as a set or an object"),
    "ten megabytes": ("x" * (10 << 20), "it is larger than 4 MiB"),
}


@pytest.mark.parametrize(("arguments", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_hashed_gives_a_reason(arguments: Any, why: str, gated: Gated) -> None:
    known = asked(gated, ToolCallRequestPart(arguments, "look_up", "1"))
    assert "prompt.hash" not in known
    assert known["fingerprint.gap"] == f"hook: {why}"


def test_half_an_emoji_is_a_prompt_too(gated: Gated) -> None:
    assert asked(gated, TextPart("\ud83e"))["prompt.text_hash"] == canonical_hash({"system": "", "user": "\ud83e"})


def test_a_span_without_room_gets_its_stamps_when_it_is_released() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=8))
    provider.add_span_processor(GateSpanProcessor(exporter))
    handler = TelemetryHandler(tracer_provider=provider, completion_hook=loaded())
    with handler.inference("openai", request_model="m") as call:
        call.input_messages = [InputMessage(role="user", parts=[TextPart("u")])]
        call.attributes.update({f"key {number}": number for number in range(4)})
    provider.shutdown()
    (span,) = exporter.get_finished_spans()
    known = dict(span.attributes or {})
    assert known["prompt.text_hash"] == canonical_hash({"system": "", "user": "u"})
    assert {f"key {number}" for number in range(4)} <= known.keys()
    assert known["spangate.verdict"] == "pass"


def test_nothing_that_it_is_handed_makes_it_raise(caplog: pytest.LogCaptureFixture) -> None:
    hook = CompletionHook()
    provider = TracerProvider(shutdown_on_exit=False)
    span: Any = provider.get_tracer("app").start_span("chat", attributes={"gen_ai.operation.name": "chat"})
    with mock.patch("spangate._completion_hook.record", side_effect=KeyError("defect")):
        for _ in range(2):
            hook.on_completion(inputs=[1], span=span)
    hook.on_completion(inputs=[object()], span=span, something_new=1)
    hook.on_completion(inputs=[], span=None)
    hook.on_completion(inputs=[1], span="no span")
    span.end()
    hook.on_completion(inputs=[1], span=span)
    assert [one.message for one in caplog.records] == [
        "the completion hook failed; a model call may be without its fingerprint"
    ]
