"""No value that foreign code records makes a dialect raise: what makes no sense is unknown."""

from __future__ import annotations

import json
import string
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spangate._dialects import DIALECTS, classify, could_be_agent, dialect_of
from spangate._dialects._base import Request, TokenCounts, ToolCall, Turn
from spangate._records import Event, Span
from tests import recordings
from tests.spans import span

ROLES = {
    "agent",
    "workflow",
    "generation",
    "tool",
    "iteration",
    "process",
    "setup",
    "transport",
    "entry",
    "other",
}
RECORDED = [found for name in recordings.names() if name.endswith("/basic") for found in recordings.spans(name)]
KEYS = sorted(
    {key for found in RECORDED for key in found.attributes}
    | {key for dialect in DIALECTS for key in dialect.payload_keys}
    | {mark for dialect in DIALECTS for mark in dialect.marks}
    | {"error.type", "mcp.method.name", "gen_ai.tool.status", "gen_ai.prompt.0.role", "op", "path", "ok", "metadata"}
)
SCOPES = sorted({scope for dialect in DIALECTS for scope in dialect.scopes} | {"app", ""})
NAMES = sorted({found.name for found in RECORDED} | {"Step 1", "turn", "handoff", "agent.run", "tools/call x"})
EVENTS = [
    "exception",
    "gen_ai.choice",
    "gen_ai.tool.message",
    "gen_ai.assistant.message",
    "gen_ai.client.inference.operation.details",
]
EVENT_KEYS = [
    "exception.type",
    "content",
    "message",
    "id",
    "gen_ai.event.content",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
]
WORDS = [
    "type",
    "tool_call",
    "tool_call_response",
    "tool_use",
    "tool_result",
    "function",
    "toolUse",
    "toolResult",
    "function_call",
    "id",
    "name",
    "role",
    "tool",
    "parts",
    "content",
    "tool_calls",
    "arguments",
    "kwargs",
    "args",
    "inputs",
    "data",
    "tool_call_id",
    "model",
    "messages",
    "temperature",
    "is_error",
    "error",
    "status",
]

texts = st.one_of(st.sampled_from(WORDS), st.text(alphabet=string.printable + "\ud83e\u00e5", max_size=12))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
structures = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
json_texts = structures.map(json.dumps)
cut_texts = st.tuples(json_texts, st.integers(0, 60)).map(lambda pair: pair[0][: pair[1]])
values = st.one_of(structures, json_texts, cut_texts, st.binary(max_size=8), st.lists(json_texts, max_size=3))


def attributes_of(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    indexed = st.sampled_from([f"llm.input_messages.{n}.message.tool_calls.{n}.tool_call.id" for n in range(3)])
    return st.dictionaries(st.one_of(st.sampled_from(keys), indexed, texts), values, max_size=10)


spans = st.builds(
    span,
    name=st.one_of(st.sampled_from(NAMES), texts),
    scope=st.one_of(st.sampled_from(SCOPES), texts),
    kind=st.sampled_from(["INTERNAL", "CLIENT", "SERVER", "CONSUMER", "PRODUCER"]),
    status=st.sampled_from(["UNSET", "OK", "ERROR"]),
    status_description=texts,
    end=st.one_of(st.none(), st.just(1.0)),
    attributes=attributes_of(KEYS),
    events=st.lists(st.builds(Event, st.sampled_from(EVENTS), attributes_of(EVENT_KEYS)), max_size=3),
    dropped_attributes=st.integers(0, 1),
)


def ask_everything(found: Span) -> None:
    for dialect in DIALECTS:
        assert dialect.role(found) in ROLES
        assert dialect.outcome(found) in {"ok", "error", "timeout", "cancelled", "control_flow"}
        assert isinstance(dialect.usage(found), TokenCounts)
        assert isinstance(dialect.request(found), Request)
        assert isinstance(dialect.response_id(found), str | None)
        assert isinstance(dialect.answered(found), bool)
        executed = dialect.tool_call(found)
        check_call(executed)
        assert dialect.tool_result(found) is executed.result
        turn = dialect.turn(found)
        assert isinstance(turn, Turn)
        for call in (*(turn.asked or ()), *(turn.received or ())):
            check_call(call)
        assert all(isinstance(name, str) for name in turn.offered or ())


def check_call(call: ToolCall) -> None:
    assert isinstance(call.call_id, str | None)
    assert isinstance(call.name, str | None)
    assert isinstance(call.at_provider, bool)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spans)
def test_every_question_has_an_answer_whatever_was_recorded(found: Span) -> None:
    classify(found)
    assert found.role in ROLES
    assert dialect_of(found) in DIALECTS
    assert isinstance(could_be_agent(found.scope), bool)
    ask_everything(found)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(RECORDED), st.data())
def test_a_recorded_span_with_one_value_spoiled_is_still_read(found: Span, data: st.DataObject) -> None:
    if found.attributes:
        key = data.draw(st.sampled_from(sorted(found.attributes)))
        recorded = found.attributes[key]
        cut = recorded[: data.draw(st.integers(0, len(recorded)))] if isinstance(recorded, str) else None
        spoiled = {**found.attributes, key: data.draw(st.one_of(st.just(cut), values))}
        ask_everything(span(found.role, found.name, scope=found.scope, kind=found.kind, attributes=spoiled))


def test_huge_and_deep_values_are_unknown() -> None:
    for value in ("x" * (5 << 20), "[" * 200_000, '{"a":' * 200_000, "9" * 5000, "[" + "9" * 5000 + "]", b"\x00" * 9):
        attributes = dict.fromkeys(KEYS, value) | {"openinference.span.kind": "LLM", "gen_ai.operation.name": "chat"}
        for scope in ("app", "openinference.instrumentation.openai", "pydantic-ai"):
            made = span(scope=scope, attributes=attributes)
            dialect_of(made).turn(made)
            dialect_of(made).request(made)
            dialect_of(made).tool_call(made)
    deep = {
        "llm.input_messages" + ".0" * 100_000: "x",
        f"llm.input_messages.{'9' * 5000}.x": 1,
        "llm.input_messages.x": 1,
    }
    made = span(scope="openinference.instrumentation.langchain", attributes=deep)
    dialect_of(made).request(made)
