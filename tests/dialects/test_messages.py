"""Calls and results in recorded messages: every shape that is in use, and the difference between none and unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spangate._dialects import dialect_of
from spangate._dialects._base import ToolCall, Turn
from spangate._dialects._definitions import offered_in
from spangate._dialects._messages import asked_in, received_in
from spangate._dialects._values import MAX_PARSED
from spangate._records import Event
from tests.spans import span

ADD = {"name": "add", "arguments": {"a": 1}}
CALL = ToolCall("c1", "add", {"a": 1})
PROVIDER = ToolCall("s1", "web_search", at_provider=True)

ASKED: list[tuple[str, Any, list[ToolCall]]] = [
    ("parts", {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", **ADD}]}, [CALL]),
    ("chat", {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": ADD}]}, [CALL]),
    ("chat without type", {"tool_calls": [{"id": "c1", "function": ADD}]}, [CALL]),
    ("old chat", {"role": "assistant", "function_call": ADD}, [ToolCall(None, "add", {"a": 1})]),
    (
        "langchain",
        {"type": "ai", "tool_calls": [{"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1}}]},
        [CALL],
    ),
    ("anthropic", {"content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]}, [CALL]),
    ("responses", {"type": "function_call", "id": "fc_1", "call_id": "c1", **ADD}, [CALL]),
    ("converse", {"content": [{"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}]}, [CALL]),
    ("block alone", {"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}, [CALL]),
    ("gemini", {"parts": [{"function_call": {"id": "c1", "name": "add", "args": {"a": 1}}}]}, [CALL]),
    ("text", {"role": "assistant", "parts": [{"type": "text", "content": "use the tool"}]}, []),
    ("two", {"parts": [{"type": "tool_call", "id": "a", "name": "x"}] * 2}, [ToolCall("a", "x")] * 2),
    ("no id", {"parts": [{"type": "tool_call", "id": None, "name": "x"}]}, [ToolCall(None, "x")]),
    ("number as id", {"parts": [{"type": "tool_call", "id": 7, "name": "x"}]}, [ToolCall("7", "x")]),
    ("no arguments", {"parts": [{"type": "tool_call", "id": "c1", "name": "x"}]}, [ToolCall("c1", "x")]),
    ("provider", {"parts": [{"type": "server_tool_call", "id": "s1", "name": "web_search"}]}, [PROVIDER]),
    ("built in", {"parts": [{"type": "tool_call", "id": "s1", "name": "web_search", "builtin": True}]}, [PROVIDER]),
    ("anthropic server", {"content": [{"type": "server_tool_use", "id": "s1", "name": "web_search"}]}, [PROVIDER]),
    ("nonsense", {"parts": [None, 3, "tool", {"type": {}}, {"type": "tool"}], "content": "tool"}, []),
    ("parts are no list", {"parts": {"type": "tool_call"}, "tool_calls": 3}, []),
]


@pytest.mark.parametrize(("message", "calls"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
def test_calls_are_found_in_every_shape(message: Any, calls: list[ToolCall]) -> None:
    assert list(asked_in(json.dumps([message])) or ()) == calls
    assert list(asked_in([message]) or ()) == calls
    assert list(asked_in([json.dumps(message)]) or ()) == calls


@pytest.mark.parametrize("recorded", ["[]", "{}", [], [None, 3, []], '[null, 3, "tool", []]'])
def test_no_messages_ask_for_nothing(recorded: Any) -> None:
    assert asked_in(recorded) == ()


RESULTS: list[tuple[str, Any, Any]] = [
    ("parts", {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "42"}]}, "42"),
    ("pydantic-ai", {"parts": [{"type": "tool_call_response", "id": "c1", "name": "add", "result": 42}]}, 42),
    ("chat", {"role": "tool", "tool_call_id": "c1", "content": "42"}, "42"),
    ("langchain", {"type": "tool", "tool_call_id": "c1", "content": "42"}, "42"),
    ("anthropic", {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]}, "42"),
    ("responses", {"type": "function_call_output", "call_id": "c1", "output": "42"}, "42"),
    ("converse", {"content": [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [42]}}]}, [42]),
    ("gemini", {"parts": [{"function_response": {"id": "c1", "name": "add", "response": {"r": 42}}}]}, {"r": 42}),
]


@pytest.mark.parametrize(("message", "result"), [row[1:] for row in RESULTS], ids=[row[0] for row in RESULTS])
def test_results_are_found_in_every_shape_and_completed_from_their_calls(message: Any, result: Any) -> None:
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", **ADD}]}
    assert received_in(json.dumps([call, message])) == (ToolCall("c1", "add", {"a": 1}, result),)


def test_a_result_without_its_call_stands_alone() -> None:
    answer = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "42"}]}]
    assert received_in(answer) == (ToolCall("c1", result="42"),)


def test_results_of_the_provider_are_marked() -> None:
    answer = [{"parts": [{"type": "server_tool_call_response", "id": "s1"}, {"type": "web_search_tool_result"}]}]
    assert [call.at_provider for call in received_in(answer) or ()] == [True, True]
    history = [{"content": [{"type": "server_tool_use", "id": "s1", "name": "web_search"}]}]
    plain = [{"content": [{"type": "tool_result", "tool_use_id": "s1"}]}]
    assert [call.at_provider for call in received_in(history + plain) or ()] == [True]


def test_ids_that_start_anew_in_every_turn_name_the_latest_call() -> None:
    turns = [
        {"parts": [{"type": kind, "id": "call_0", **more}]}
        for name in ("first", "second")
        for kind, more in (("tool_call", {"name": name}), ("tool_call_response", {}))
    ]
    assert [call.name for call in received_in(turns) or ()] == ["first", "second"]


def test_items_that_hide_the_call_id_are_matched_in_their_order() -> None:
    asked = [{"type": "tool_call", "id": f"fc_{number}", "name": f"tool_{number}"} for number in range(2)]
    results = [{"type": "tool_call_response", "id": f"call_{number}"} for number in range(2)]
    found = received_in([{"parts": asked}, {"parts": results}])
    assert [(call.call_id, call.name) for call in found or ()] == [("call_0", "tool_0"), ("call_1", "tool_1")]


UNKNOWN = [
    '[{"parts": [{"type": "tool_call", "id": "c',
    '[{"role": "assistant", "parts": [{"type": "text", "content": "hello',
    "half emoji \ud83e",
    "[" * 100_000,
    '"tool_call"',
    "",
    "[" + " " * MAX_PARSED + '"tool"]',
    None,
    3,
    True,
    b'[{"tool_calls": []}]',
    float("nan"),
]


@pytest.mark.parametrize("recorded", UNKNOWN, ids=[repr(value)[:40] for value in UNKNOWN])
def test_what_cannot_be_read_is_unknown_and_not_none(recorded: Any) -> None:
    assert asked_in(recorded) is None
    assert received_in(recorded) is None


DEFINITIONS = [
    ([{"type": "function", "name": "add"}], {"add"}),
    ([{"type": "function", "function": {"name": "add"}}], {"add"}),
    ([{"name": "add", "input_schema": {}}, {"name": "sub"}], {"add", "sub"}),
    ([{"toolSpec": {"name": "add", "inputSchema": {"json": {}}}}], {"add"}),
    ([{"name": "add", "parameters": None}, None, 3, {"name": 7}, {}], {"add"}),
    ({"type": "function", "function": {"name": "add"}}, {"add"}),
    ([], set()),
]


@pytest.mark.parametrize(("definitions", "names"), DEFINITIONS)
def test_names_of_tools_are_read_in_every_shape(definitions: Any, names: set[str]) -> None:
    assert offered_in(json.dumps(definitions)) == frozenset(names)
    assert offered_in(definitions) == frozenset(names)


@pytest.mark.parametrize("recorded", ['[{"name": "a', "x", None, 3])
def test_definitions_that_cannot_be_read_are_unknown(recorded: Any) -> None:
    assert offered_in(recorded) is None


def flattened(prefix: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{prefix}.{index}.{key}": value for index, message in enumerate(messages) for key, value in message.items()
    }


def test_flattened_messages_of_openinference_are_read() -> None:
    asks = {
        "message.role": "assistant",
        "message.tool_calls.0.tool_call.id": "c1",
        "message.tool_calls.0.tool_call.function.name": "add",
        "message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
    }
    answers = {"message.role": "tool", "message.tool_call_id": "c1", "message.content": "42"}
    attributes = {
        "openinference.span.kind": "LLM",
        **flattened("llm.input_messages", {"message.role": "user", "message.content": "x"}, asks, answers),
        **flattened("llm.output_messages", {"message.role": "assistant", "message.content": "42"}),
        "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "add"}}',
        "llm.tools.1.tool.json_schema": '{"name": "sub", "input_schema": {}}',
    }
    made = span("generation", attributes=attributes)
    turn = dialect_of(made).turn(made)
    assert turn.asked == ()
    assert turn.received == (ToolCall("c1", "add", '{"a": 1}', "42"),)
    assert turn.offered == frozenset({"add", "sub"})
    lossy = span("generation", attributes=attributes, dropped_attributes=1)
    assert dialect_of(lossy).turn(lossy).received is None
    assert dialect_of(lossy).turn(lossy).asked is None


def test_flattened_messages_of_older_instrumentations_are_read() -> None:
    attributes = {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "x",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "add",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
        "llm.request.functions.0.name": "add",
    }
    made = span("generation", attributes=attributes)
    turn = dialect_of(made).turn(made)
    assert turn.asked == (ToolCall("c1", "add", "{}"),)
    assert turn.received == ()
    assert turn.offered == frozenset({"add"})


EVENTS = {
    "one event a message": [
        Event("gen_ai.user.message", {"content": '[{"text": "x"}]'}),
        Event("gen_ai.assistant.message", {"content": '[{"toolUse": {"toolUseId": "c1", "name": "add"}}]'}),
        Event("gen_ai.tool.message", {"content": '[{"toolResult": {"toolUseId": "c1", "content": "42"}}]'}),
        Event("gen_ai.choice", {"message": '[{"toolUse": {"toolUseId": "c2", "name": "sub"}}]'}),
    ],
    "bodies as JSON": [
        Event(
            "gen_ai.assistant.message",
            {"gen_ai.event.content": '{"tool_calls": [{"id": "c1", "function": {"name": "add"}}]}'},
        ),
        Event("gen_ai.tool.message", {"gen_ai.event.content": '{"id": "c1", "content": "42"}'}),
        Event(
            "gen_ai.choice",
            {"gen_ai.event.content": '{"message": {"tool_calls": [{"id": "c2", "function": {"name": "sub"}}]}}'},
        ),
    ],
    "one event for the whole call": [
        Event(
            "gen_ai.client.inference.operation.details",
            {
                "gen_ai.input.messages": '[{"parts": [{"type": "tool_call", "id": "c1", "name": "add"}]},'
                ' {"parts": [{"type": "tool_call_response", "id": "c1", "response": "42"}]}]'
            },
        ),
        Event(
            "gen_ai.client.inference.operation.details",
            {"gen_ai.output.messages": '[{"parts": [{"type": "tool_call", "id": "c2", "name": "sub"}]}]'},
        ),
    ],
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_messages_in_events_are_read(events: list[Event]) -> None:
    made = span("generation", scope="strands.telemetry.tracer", events=events)
    turn = dialect_of(made).turn(made)
    assert [(call.call_id, call.name) for call in turn.received or ()] == [("c1", "add")]
    assert [(call.call_id, call.name) for call in turn.asked or ()] == [("c2", "sub")]
    assert dialect_of(made).answered(made)


def test_events_that_say_nothing_of_messages_leave_the_turn_unknown() -> None:
    made = span("generation", scope="strands.telemetry.tracer", events=[Event("exception", {})])
    assert dialect_of(made).turn(made) == Turn()
    assert not dialect_of(made).answered(made)


def test_history_that_is_plain_text_is_unknown() -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "tool-response",
        "llm.input_messages.0.message.content": "Call id: c1\nObservation:\nsunny",
        "llm.output_messages.0.message.role": "assistant",
    }
    made = span("generation", scope="openinference.instrumentation.smolagents", attributes=attributes)
    turn = dialect_of(made).turn(made)
    assert turn.received is None
    assert turn.asked == ()


def test_an_id_that_is_only_an_items_is_no_call_id() -> None:
    output = '[{"parts": [{"type": "tool_call", "id": "fc_1", "name": "add"}]}]'
    made = span(scope="opentelemetry.instrumentation.openai.v1", attributes={"gen_ai.output.messages": output})
    assert dialect_of(made).turn(made).asked == [ToolCall(None, "add")]
