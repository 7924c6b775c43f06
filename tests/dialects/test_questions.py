"""Requests, usage and tool calls, in the names of each dialect."""

from __future__ import annotations

from typing import Any

import pytest

from spangate._dialects import dialect_of
from spangate._dialects._base import Request, TokenCounts, ToolCall
from spangate._records import ABSENT, Event, Span
from tests.spans import span

GENAI = "opentelemetry.instrumentation.genai.openai"
OI = "openinference.instrumentation."
LLM = {"openinference.span.kind": "LLM"}

USAGE = [
    ("app", {"gen_ai.operation.name": "chat"}, TokenCounts()),
    (
        GENAI,
        {
            "gen_ai.usage.input_tokens": 1,
            "gen_ai.usage.output_tokens": 2,
            "gen_ai.usage.cache_read.input_tokens": 3,
            "gen_ai.usage.cache_creation.input_tokens": 4,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        TokenCounts(1, 2, ABSENT, 3, 4, 5),
    ),
    (
        GENAI,
        {
            "gen_ai.usage.prompt_tokens": "1",
            "gen_ai.usage.completion_tokens": 2.0,
            "llm.usage.total_tokens": 3,
            "gen_ai.usage.cache_read_input_tokens": 4,
            "gen_ai.usage.cache_creation_input_tokens": 5,
            "gen_ai.usage.reasoning_tokens": None,
        },
        TokenCounts("1", 2.0, 3, 4, 5, None),
    ),
    (GENAI, {"gen_ai.usage.input_tokens": 0}, TokenCounts(0)),
    (
        "com.anthropic.sdk.python",
        {"gen_ai.usage.input_tokens": 117, "gen_ai.usage.cache_write.input_tokens": 7},
        TokenCounts(117, cache_written=7),
    ),
    (
        "pydantic-ai",
        {"gen_ai.usage.input_tokens": 1, "gen_ai.usage.details.reasoning_tokens": 5},
        TokenCounts(1, reasoning=5),
    ),
    (
        "pydantic-ai",
        {
            "gen_ai.aggregated_usage.input_tokens": 420,
            "gen_ai.aggregated_usage.output_tokens": 63,
            "gen_ai.aggregated_usage.cache_read.input_tokens": 192,
        },
        TokenCounts(420, 63, cached=192),
    ),
    (
        OI + "openai",
        {
            **LLM,
            "llm.token_count.prompt": 1,
            "llm.token_count.completion": 2,
            "llm.token_count.total": 3,
            "llm.token_count.prompt_details.cache_read": 4,
            "llm.token_count.prompt_details.cache_write": 5,
            "llm.token_count.completion_details.reasoning": 6,
        },
        TokenCounts(1, 2, 3, 4, 5, 6),
    ),
    (
        "opentelemetry.instrumentation.crewai.instrumentation",
        {"crewai.crew.token_usage": "total_tokens=483 prompt_tokens=420 completion_tokens=63"},
        TokenCounts(),
    ),
    ("spangate", {"input_tokens": 1, "output_tokens": 2}, TokenCounts(1, 2)),
    ("spangate", {"agent.output_tokens": 2}, TokenCounts(ABSENT, 2)),
    ("app", {"http.request.method": "GET"}, TokenCounts()),
]


@pytest.mark.parametrize(("scope", "attributes", "counts"), USAGE)
def test_token_counts_come_back_as_they_were_recorded(
    scope: str, attributes: dict[str, Any], counts: TokenCounts
) -> None:
    made = span(scope=scope, attributes=attributes)
    assert dialect_of(made).usage(made) == counts


MESSAGES = '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
CHAT = [{"role": "user", "content": "hi"}]
FLAT = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}

REQUESTS = [
    (
        GENAI,
        {
            "gen_ai.request.model": "m",
            "gen_ai.response.model": "m-2026",
            "gen_ai.request.temperature": 0,
            "gen_ai.request.top_p": 0.5,
            "gen_ai.request.stop_sequences": ["x"],
            "gen_ai.request.choice.count": 2,
            "gen_ai.request.stream": True,
            "gen_ai.output.type": "json",
            "gen_ai.system_instructions": '[{"type": "text", "content": "be kind"}]',
            "gen_ai.input.messages": MESSAGES,
            "gen_ai.tool.definitions": '[{"name": "add"}]',
        },
        Request(
            "m",
            0,
            [{"type": "text", "content": "be kind"}],
            [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
            [{"name": "add"}],
            {"top_p": 0.5, "stop": ["x"], "n": 2, "response_format": "json"},
        ),
    ),
    (GENAI, {"gen_ai.response.model": "m"}, Request()),
    (GENAI, {"gen_ai.input.messages": MESSAGES[:30], "gen_ai.tool.definitions": "[{"}, Request()),
    (GENAI, {"gen_ai.system_instructions": "be kind"}, Request(system="be kind")),
    (GENAI, {"gen_ai.system_instructions": "[be] kind"}, Request(system="[be] kind")),
    (
        "opentelemetry.instrumentation.openai.v1",
        {
            "gen_ai.request.model": "m",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "hi",
            "llm.request.functions.0.name": "add",
        },
        Request("m", messages=CHAT, tools=[{"name": "add"}]),
    ),
    (
        "opentelemetry.instrumentation.openai_agents",
        {"gen_ai.request.temperature": 1.0, "gen_ai.request.top_p": 1.0, "gen_ai.input.messages": "[]"},
        Request(messages=[]),
    ),
    (
        OI + "openai",
        {
            **LLM,
            "llm.model_name": "m-2026",
            "input.value": '{"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "hi"}],'
            ' "tools": [{"name": "add"}], "top_p": 0.5, "stream": true, "seed": null}',
        },
        Request("m", 0, messages=CHAT, tools=[{"name": "add"}], params={"top_p": 0.5}),
    ),
    (
        OI + "openai",
        {**LLM, "input.value": '{"model": "m", "instructions": "be kind", "input": "hi"}'},
        Request("m", system="be kind", messages="hi"),
    ),
    (
        OI + "openai",
        {**LLM, **FLAT, "input.value": "hi", "llm.invocation_parameters": '{"model": "m"}', "llm.model_name": "m-2026"},
        Request("m", messages=CHAT),
    ),
    (
        OI + "anthropic",
        {**LLM, **FLAT, "llm.request.model_name": "m", "llm.model_name": "m-2026"},
        Request("m", messages=CHAT),
    ),
    (
        OI + "langchain",
        {
            **LLM,
            **FLAT,
            "llm.model_name": "m-2026",
            "llm.invocation_parameters": '{"model": "m", "model_name": "m", "temperature": 0.5, "_type": "openai-chat",'
            ' "stop": null, "tools": [{"name": "add"}], "seed": 7}',
        },
        Request("m", 0.5, messages=CHAT, tools=[{"name": "add"}], params={"seed": 7}),
    ),
    (OI + "langchain", {**LLM, "llm.model_name": "m-2026"}, Request()),
    (
        OI + "smolagents",
        {**LLM, "llm.model_name": "m", "llm.invocation_parameters": '{"temperature": 0.0}'},
        Request("m", 0.0),
    ),
    (OI + "llama_index", {**LLM, "llm.model_name": "m"}, Request("m")),
    (
        OI + "openai_agents",
        {**LLM, "llm.model_name": "m-2026", "llm.invocation_parameters": '{"id": "resp_1", "temperature": 1.0}'},
        Request(),
    ),
    (OI + "unheard_of", {**LLM, "llm.model_name": "m-2026"}, Request()),
    ("app", {**LLM, "llm.model_name": "m"}, Request("m")),
    (
        OI + "openai_agents",
        {**LLM, "llm.tools.0.tool.json_schema": '{"name": "add"}', "llm.tools.1.tool.json_schema": '{"na'},
        Request(),
    ),
    ("spangate", {"model": "m"}, Request("m")),
    ("app", {}, Request()),
]


@pytest.mark.parametrize(("scope", "attributes", "request_"), REQUESTS)
def test_what_was_asked_for_is_read_from_the_request_alone(
    scope: str, attributes: dict[str, Any], request_: Request
) -> None:
    made = span("generation", scope=scope, attributes=attributes)
    assert dialect_of(made).request(made) == request_


def test_tools_whose_definitions_were_flattened_out_of_shape_are_unknown() -> None:
    attributes = {"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "llm.request.functions.name": "add"}
    made = span("generation", attributes=attributes)
    assert dialect_of(made).turn(made).offered is None


def test_a_value_that_stands_where_others_are_flattened_below_it_is_kept() -> None:
    attributes = {**LLM, "llm.input_messages.0": "whole", **FLAT}
    made = span("generation", scope=OI + "langchain", attributes=attributes)
    assert dialect_of(made).request(made).messages == ["whole"]


def test_a_request_may_stand_in_events() -> None:
    details = "gen_ai.client.inference.operation.details"
    events = [
        Event(details, {"gen_ai.system_instructions": '[{"type": "text", "content": "be kind"}]'}),
        Event(details, {"gen_ai.input.messages": MESSAGES}),
    ]
    made = span("generation", scope="strands.telemetry.tracer", events=events)
    found = dialect_of(made).request(made)
    assert found.system == [{"type": "text", "content": "be kind"}]
    assert found.messages == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]


TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add"}
OI_TOOL = {"openinference.span.kind": "TOOL", "tool.name": "add"}

CALLS = [
    ("app", {**TOOL, "gen_ai.tool.call.id": "c1"}, ToolCall("c1", "add")),
    (
        "app",
        {**TOOL, "gen_ai.tool.call.arguments": '{"a": 1}', "gen_ai.tool.call.result": "42"},
        ToolCall(None, "add", '{"a": 1}', "42"),
    ),
    ("app", {"gen_ai.operation.name": "execute_tool"}, ToolCall(None, "sub")),
    ("gcp.vertex.agent", {**TOOL, "gen_ai.tool.call.id": "<not specified>"}, ToolCall(None, "add")),
    (
        "gcp.vertex.agent",
        {**TOOL, "gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "42"},
        ToolCall(None, "add", "{}", "42"),
    ),
    ("agent_framework", {**TOOL, "gen_ai.tool.call.id": "unknown"}, ToolCall(None, "add")),
    ("pydantic-ai", {**TOOL, "tool_arguments": "{}", "tool_response": "42"}, ToolCall(None, "add", "{}", "42")),
    (OI + "crewai", {**OI_TOOL, "input.value": "{}", "output.value": 42}, ToolCall(None, "add", "{}", 42)),
    (OI + "crewai", {**OI_TOOL, "tool.id": "c1"}, ToolCall("c1", "add")),
    (OI + "llama_index", {**OI_TOOL, "input.value": '{"kwargs": {"a": 1}}'}, ToolCall(None, "add", {"a": 1})),
    (
        OI + "smolagents",
        {**OI_TOOL, "input.value": '{"args": [], "kwargs": {"a": 1}}'},
        ToolCall(None, "add", {"a": 1}),
    ),
    (
        OI + "smolagents",
        {**OI_TOOL, "input.value": '{"args": [1], "kwargs": {}}'},
        ToolCall(None, "add", '{"args": [1], "kwargs": {}}'),
    ),
    (
        OI + "langchain",
        {**OI_TOOL, "input.value": "x", "output.value": '{"type": "tool", "data": {"tool_call_id": "c1"}}'},
        ToolCall("c1", "add", "x", '{"type": "tool", "data": {"tool_call_id": "c1"}}'),
    ),
    (
        "opentelemetry.instrumentation.langchain",
        {**TOOL, "gen_ai.tool.call.arguments": '{"inputs": {"a": 1}, "kwargs": {"tool_call_id": "c1"}}'},
        ToolCall("c1", "add", {"a": 1}),
    ),
    (
        "traceloop.tracer",
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "add",
            "traceloop.entity.input": "{}",
            "traceloop.entity.output": "42",
        },
        ToolCall(None, "sub", "{}", "42"),
    ),
    ("mcp-python-sdk", {**TOOL, "jsonrpc.request.id": "7"}, ToolCall(None, "add")),
    ("spangate", {"tool": "add"}, ToolCall(None, "sub")),
    ("app", {"http.route": "/"}, ToolCall()),
]


@pytest.mark.parametrize(("scope", "attributes", "call"), CALLS)
def test_a_tool_span_says_which_call_it_executed(scope: str, attributes: dict[str, Any], call: ToolCall) -> None:
    made = span("tool", "execute_tool sub", scope=scope, kind="SERVER", attributes=attributes)
    assert dialect_of(made).tool_call(made) == call
    assert dialect_of(made).tool_result(made) == call.result


def test_names_of_tools_stand_in_other_places_too() -> None:
    entity = span(name="x", scope="traceloop.tracer", attributes={"traceloop.entity.name": "add"})
    assert dialect_of(entity).tool_call(entity).name == "add"
    served = span(name="tools/call add", scope="fastmcp", kind="SERVER")
    assert dialect_of(served).tool_call(served).name == "add"
    ours = span(name="agent.tool", scope="spangate", attributes={"agent.tool": "add"})
    assert dialect_of(ours).tool_call(ours).name == "add"


def test_a_strands_tool_tells_arguments_and_result_in_events() -> None:
    events = [
        Event("gen_ai.tool.message", {"role": "tool", "content": '{"a": 1}', "id": "c1"}),
        Event("gen_ai.choice", {"message": '[{"text": "42"}]', "id": "c1"}),
    ]
    made = span("tool", scope="strands.telemetry.tracer", attributes=TOOL, events=events)
    assert dialect_of(made).tool_call(made) == ToolCall(None, "add", '{"a": 1}', '[{"text": "42"}]')
    told = {**TOOL, "gen_ai.tool.call.result": "42"}
    made = span("tool", scope="strands.telemetry.tracer", attributes=told, events=events)
    assert dialect_of(made).tool_call(made) == ToolCall(None, "add", '{"a": 1}', "42")


RESPONSE_IDS = [
    (GENAI, {"gen_ai.response.id": "r"}, "r"),
    (GENAI, {"gen_ai.response.id": ""}, None),
    (GENAI, {"gen_ai.response.id": 7}, None),
    (OI + "openai", {**LLM, "output.value": '{"id":"anything","choices":[]}'}, "anything"),
    (OI + "openai", {**LLM, "output.value": '{"choices": [], "id": "chatcmpl-1"}'}, "chatcmpl-1"),
    (OI + "openai", {**LLM, "output.value": '{"text": "the \\"id\\": \\"chatcmpl-1\\""}'}, None),
    (OI + "openai", {**LLM, "output.value": 7}, None),
    (OI + "langchain", {**LLM, "output.value": '{"id": "msg_1", "response_metadata": {"id": "resp_1"}}'}, "resp_1"),
    (OI + "langchain", {**LLM, "output.value": '{"id": "msg_1"}'}, None),
    ("app", {}, None),
]


@pytest.mark.parametrize(("scope", "attributes", "response_id"), RESPONSE_IDS)
def test_the_servers_id_of_an_answer(scope: str, attributes: dict[str, Any], response_id: str | None) -> None:
    made = span("generation", scope=scope, attributes=attributes)
    assert dialect_of(made).response_id(made) == response_id


ANSWERED = [
    (GENAI, {"gen_ai.response.finish_reasons": ["stop"]}, True),
    (GENAI, {"gen_ai.output.messages": MESSAGES}, True),
    (GENAI, {"gen_ai.output.messages": "[]", "gen_ai.response.finish_reasons": []}, False),
    (GENAI, {"gen_ai.response.id": "r"}, False),
    ("agent_framework", {"gen_ai.response.finish_reasons": '["stop"]'}, True),
    ("com.anthropic.sdk.python", {"anthropic.message.stop_reason": "tool_use"}, True),
    ("opentelemetry.instrumentation.openai.v1", {"gen_ai.completion.0.content": "hi"}, True),
    (OI + "openai", {**LLM, "output.value": "hi"}, True),
    (OI + "openai", {**LLM, "llm.finish_reason": "stop"}, True),
    (OI + "openai", LLM, False),
    ("app", {}, False),
]


@pytest.mark.parametrize(("scope", "attributes", "answered"), ANSWERED)
def test_a_completion_shows(scope: str, attributes: dict[str, Any], *, answered: bool) -> None:
    made = span("generation", scope=scope, attributes=attributes)
    assert dialect_of(made).answered(made) is answered


def test_parameters_are_read_by_their_whole_names_however_often_they_were_met() -> None:
    odd = {"gen_ai.operation.name": "chat", "gen_ai.request.a\nb": 1, "gen_ai.request.top_p": 0.5}
    for attributes in (odd, odd, {**odd, "gen_ai.request.top_p": 0.25}):
        made = Span(1, 2, None, "chat", 0, attributes=attributes)
        assert dialect_of(made).request(made).params == {"a\nb": 1, "top_p": attributes["gen_ai.request.top_p"]}
