"""Effective status: what became of a span, whatever status its framework wrote."""

from __future__ import annotations

from typing import Any

import pytest

from spangate._dialects import dialect_of
from spangate._dialects._outcome import outcome_of
from spangate._records import Event
from tests.spans import span


def raised(exception_type: Any) -> Event:
    return Event("exception", {"exception.type": exception_type})


OUTCOMES = [
    ({}, "ok"),
    ({"status": "OK"}, "ok"),
    ({"status": "ERROR"}, "error"),
    ({"status": "OK", "attributes": {"error.type": "tool_error"}}, "error"),
    ({"attributes": {"error.type": "500"}}, "error"),
    ({"attributes": {"error.type": 500}}, "error"),
    ({"attributes": {"error.type": ""}}, "ok"),
    ({"attributes": {"error.type": None}}, "ok"),
    ({"events": [raised("ValueError")]}, "error"),
    ({"events": [raised(None)]}, "error"),
    ({"events": [Event("First Token Stream Event", {})]}, "ok"),
    ({"events": [raised("openai.APITimeoutError")], "status": "ERROR"}, "timeout"),
    ({"attributes": {"error.type": "client_timeout_error"}}, "timeout"),
    ({"attributes": {"error.type": "litellm.exceptions.Timeout"}}, "timeout"),
    ({"attributes": {"error.type": "pydantic_ai.exceptions.RunTimedOut"}}, "timeout"),
    ({"attributes": {"error.type": "DEADLINE_EXCEEDED"}}, "timeout"),
    ({"attributes": {"error.type": "asyncio.exceptions.CancelledError"}, "status": "ERROR"}, "cancelled"),
    ({"events": [raised("GeneratorExit")], "status": "ERROR"}, "cancelled"),
    ({"events": [raised("KeyboardInterrupt")]}, "cancelled"),
    (
        {"attributes": {"error.type": "_OTHER"}, "status": "ERROR", "status_description": "abandoned stream"},
        "cancelled",
    ),
    ({"events": [raised("langgraph.errors.NodeCancelledError")]}, "error"),
    ({"events": [raised("langgraph.errors.GraphInterrupt")], "status": "ERROR"}, "control_flow"),
    ({"events": [raised("langgraph.errors.ParentCommand")], "status": "ERROR"}, "control_flow"),
    ({"events": [raised("pydantic_ai.exceptions.ToolRetryError")], "status": "ERROR"}, "control_flow"),
    ({"attributes": {"error.type": "pydantic_ai.exceptions.CallDeferred"}}, "control_flow"),
    ({"events": [raised("StopAsyncIteration")]}, "control_flow"),
    ({"attributes": {"error.type": "_OTHER"}, "events": [raised("GraphInterrupt")]}, "control_flow"),
    ({"events": [raised("CancelledError"), raised("ValueError")], "status": "ERROR"}, "error"),
    ({"events": [raised("ValueError"), raised("CancelledError")], "status": "ERROR"}, "cancelled"),
    ({"status": "ERROR", "status_description": "CancelledError: "}, "cancelled"),
    ({"status": "ERROR", "status_description": "GraphInterrupt()"}, "control_flow"),
    ({"status": "ERROR", "status_description": "asyncio.TimeoutError"}, "timeout"),
    ({"status": "ERROR", "status_description": "the CancelledError was not what it seemed"}, "error"),
    ({"status": "OK", "status_description": "CancelledError: "}, "ok"),
]


@pytest.mark.parametrize(("fields", "outcome"), OUTCOMES, ids=[str(fields) for fields, _ in OUTCOMES])
def test_the_names_of_types_tell_how_a_span_failed(fields: dict[str, Any], outcome: str) -> None:
    assert outcome_of(span(**fields)) == outcome


def test_a_mark_of_the_dialect_fails_a_span_that_says_nothing_else() -> None:
    assert outcome_of(span(), failed=True) == "error"
    assert outcome_of(span(events=[raised("CancelledError")]), failed=True) == "cancelled"


MARKED = [
    ("strands.telemetry.tracer", {"gen_ai.tool.status": "error"}, "error"),
    ("strands.telemetry.tracer", {"gen_ai.tool.status": "success"}, "ok"),
    ("strands.telemetry.tracer", {"strands.cancellation.type": "CancelledError"}, "cancelled"),
    ("opentelemetry.instrumentation.langchain", {"gen_ai.task.status": "failure"}, "error"),
    ("opentelemetry.instrumentation.langchain", {"gen_ai.task.status": "success"}, "ok"),
    (
        "openinference.instrumentation.llama_index",
        {"openinference.span.kind": "TOOL", "output.value": '{"tool_name":"x","is_error":true}'},
        "error",
    ),
    (
        "openinference.instrumentation.llama_index",
        {"openinference.span.kind": "TOOL", "output.value": '{"text": "say \\"is_error\\": true", "is_error": false}'},
        "ok",
    ),
    (
        "openinference.instrumentation.llama_index",
        {"openinference.span.kind": "TOOL", "output.value": '{"raw_output": {"is_error": true}, "is_error": false}'},
        "ok",
    ),
    (
        "openinference.instrumentation.langchain",
        {"openinference.span.kind": "TOOL", "output.value": '{"type": "tool", "data": {"status": "error"}}'},
        "error",
    ),
    (
        "openinference.instrumentation.langchain",
        {"openinference.span.kind": "TOOL", "output.value": '{"status": "error"}'},
        "ok",
    ),
    ("spangate", {"ok": False}, "error"),
    ("spangate", {"ok": False, "error_class": "TimeoutError"}, "timeout"),
    ("spangate", {"agent.ok": False, "agent.error_class": "CancelledError"}, "cancelled"),
    ("spangate", {"ok": True}, "ok"),
    ("spangate", {"ok": False, "error_class": 3}, "error"),
]


@pytest.mark.parametrize(("scope", "attributes", "outcome"), MARKED)
def test_dialects_know_their_own_marks_of_failure(scope: str, attributes: dict[str, Any], outcome: str) -> None:
    marked = span(scope=scope, attributes=attributes)
    assert dialect_of(marked).outcome(marked) == outcome


def test_a_retry_asked_of_the_model_is_control_flow_only_where_it_failed() -> None:
    cause = {"pydantic_ai.tool.retry.cause": "validation_error"}
    retried = span(scope="pydantic-ai", status="ERROR", events=[raised("ValidationError")], attributes=cause)
    assert dialect_of(retried).outcome(retried) == "control_flow"
    timed_out = span(scope="pydantic-ai", status="ERROR", events=[raised("TimeoutError")], attributes=cause)
    assert dialect_of(timed_out).outcome(timed_out) == "timeout"
    fine = span(scope="pydantic-ai", attributes=cause)
    assert dialect_of(fine).outcome(fine) == "ok"
