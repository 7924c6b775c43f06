"""OpenTelemetry's instrumentation of the openai client, with the messages in log records instead of its spans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from unittest import mock

import pytest
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import INVALID_SPAN, Span, Tracer

from spangate import GateLogRecordProcessor
from tests.frameworks import openai_agent
from tests.frameworks.gated import Account, Gated, passed
from tests.frameworks.openai_agent import GENAI, Asked, Tracing
from tests.frameworks.scenes import TWO_CITIES, rain
from tests.logs.logged import in_memory
from tests.model_server import USAGE

TWICE = (2 * USAGE.input, 2 * USAGE.output)


class Logs:
    """A logger provider with the other half of the gate, and what left it."""

    def __init__(self, gated: Gated) -> None:
        self.exporter = in_memory()
        self.provider = LoggerProvider(Resource({}), shutdown_on_exit=False)
        self.provider.add_log_record_processor(GateLogRecordProcessor(self.exporter, gated.gate))

    @contextmanager
    def instrumented(self, provider: TracerProvider) -> Iterator[None]:
        with mock.patch.dict(os.environ, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "event_only"}):
            OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=self.provider)
            try:
                yield
            finally:
                OpenAIInstrumentor().uninstrument()

    def left(self) -> list[str | None]:
        """The names of the events that have left."""
        assert self.provider.force_flush()
        return [record.log_record.event_name for record in self.exporter.get_finished_logs()]


@pytest.fixture
def logs(gated: Gated) -> Iterator[Logs]:
    logs = Logs(gated)
    yield logs
    logs.provider.shutdown()


@pytest.mark.parametrize("stream", [False, True])
def test_cited_tools_are_found_in_log_records(gated: Gated, logs: Logs, stream: bool) -> None:  # noqa: FBT001
    tracing = replace(GENAI, instrumented=logs.instrumented)
    with openai_agent.agent(gated, {"model-a": TWO_CITIES}, tracing=tracing, stream=stream) as run:
        run("model-a", rain)
    assert gated.released() == passed(TWICE)
    chats = [span for span in gated.exported() if span.name.startswith("chat")]
    assert all("prompt.hash" in (span.attributes or {}) and not span.events for span in chats)
    assert logs.left() == ["gen_ai.client.inference.operation.details"] * 2


def test_a_tool_that_ran_without_a_span_is_missed_and_the_records_stay(gated: Gated, logs: Logs) -> None:
    def only_paris(tracer: Tracer, asked: Asked) -> AbstractContextManager[Span]:
        return GENAI.tool_span(tracer, asked) if "Paris" in asked.arguments else nullcontext(INVALID_SPAN)

    tracing = Tracing(logs.instrumented, GENAI.agent_span, only_paris)
    with openai_agent.agent(gated, {"model-a": TWO_CITIES}, tracing=tracing) as run:
        run("model-a", rain)
    assert gated.refused() == Account("fail", ("completeness.cited_tool_missing",), (), TWICE)
    assert logs.left() == []
