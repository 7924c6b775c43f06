"""Cites: which calls came back to the model, and how many tool spans executed them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._cites import cites
from spangate._cites.conversation import Call
from spangate._dialects import dialect_of
from spangate._forest.recorded import recorded_runs
from spangate._records import Span
from tests import recordings
from tests.calls import Asked, chat, tool
from tests.spans import run_of, span

ROOT = span("agent", "agent", end=100.0)
ADD = json.dumps({"a": 1, "b": 2})
MUL = json.dumps({"a": 3, "b": 4})


def turn(
    at: float, *calls: Asked, history: Sequence[str] = (), received: Sequence[str] | None = None, parent: Span = ROOT
) -> list[Span]:
    """A generation at ``at`` that asks for ``calls``, and one 2 s later that has all their results, or ``received``."""
    results = [call[0] or "" for call in calls] if received is None else received
    return [
        chat(parent, at, asked=calls, received=history),
        chat(parent, at + 2, received=[*history, *results]),
    ]


def calls_of(*spans: Span) -> list[Call]:
    found = cites(run_of([ROOT, *sorted(spans, key=lambda one: one.start_ns)]))
    assert not found.blind
    return list(found.calls)


def missing(*spans: Span) -> dict[str | None, int]:
    return {call.call_id: call.missing for call in calls_of(*spans) if call.missing and not call.unchecked}


def lost(*spans: Span) -> dict[str | None, int]:
    return {call.call_id: call.lost for call in calls_of(*spans) if call.lost and not call.unchecked}


MISSES = [
    pytest.param([*turn(1, ("c1", "add")), tool(ROOT, 2, "mul", "c9")], {"c1": 1}, id="no span of the call"),
    pytest.param(
        [*turn(1, ("c1", "add"), ("c2", "add")), tool(ROOT, 2, "add", "c1")], {"c2": 1}, id="one of two parallel calls"
    ),
    pytest.param(
        [*turn(1, ("c1", "add"), ("c1", "add")), tool(ROOT, 2, "add", "c1")], {"c1": 1}, id="one of two with one id"
    ),
    pytest.param(
        [
            *turn(1, ("c0", "sh")),
            tool(ROOT, 2, "sh", "c0"),
            tool(ROOT, 2.5, "sh", "c0"),
            *turn(4, ("c0", "sh"), history=["c0"]),
        ],
        {"c0": 1},
        id="ids restart every turn: a call that ran twice does not stand for the next turn's",
    ),
    pytest.param(
        [
            *turn(1, ("c0", "sh")),
            *turn(4, ("c0", "sh"), history=["c0"]),
            tool(ROOT, 5, "sh", "c0"),
            tool(ROOT, 5.5, "sh", "c0"),
        ],
        {"c0": 1},
        id="ids restart every turn: nor does it for the turn before, which had its answer by then",
    ),
    pytest.param([*turn(1, ("c1", "add"), ("c2", "mul")), tool(ROOT, 2, "add")], {"c2": 1}, id="by name without ids"),
    pytest.param(
        [*turn(1, ("c1", "sh")), tool(ROOT, 2, "sh"), tool(ROOT, 2.5, "sh"), *turn(4, ("c2", "sh"), history=["c1"])],
        {"c2": 1},
        id="by name, each turn has its own",
    ),
    pytest.param(
        [
            *turn(1, ("c1", "add", ADD), ("c2", "add", MUL)),
            tool(ROOT, 2, "add", None, ADD),
            tool(ROOT, 2.5, "add", None, ADD),
        ],
        {"c2": 1},
        id="by name and arguments where both sides are objects with the same keys",
    ),
    pytest.param(
        [*turn(1, ("c1", "add"), ("c2", "mul")), tool(ROOT, 2, "add", "run-7")], {"c2": 1}, id="by name, ids made up"
    ),
    pytest.param(
        [*turn(1, ("c1", "add"), ("c2", "add")), tool(ROOT, 2, "add", "c1"), tool(ROOT, 2, "mul")],
        {"c2": 1},
        id="a span without an id serves only its own name",
    ),
    pytest.param(
        [*turn(1, ("c1", "add")), span("transport", "tools/call add", parent=ROOT), tool(ROOT, 3, "x", "c9")],
        {"c1": 1},
        id="a message that carries a call is not its execution",
    ),
]

SERVED = [
    pytest.param([*turn(1, ("c1", "add")), tool(ROOT, 2, "add", "c1")], id="by id"),
    pytest.param([*turn(1, ("c1", "add"), received=["c1"] * 3), tool(ROOT, 2, "add", "c1")], id="a result told thrice"),
    pytest.param([*turn(1, ("c1", "add")), tool(ROOT, 2, "AddTool", "c1")], id="by id under another name"),
    pytest.param([*turn(1, ("c1", "add")), tool(ROOT, 40, "add", "c1")], id="a unique id tells, not the clock"),
    pytest.param([*turn(1, ("c1", "add")), tool(None, 2, "add", "c1")], id="a claimed stray"),
    pytest.param(
        [*turn(1, ("c1", "add", '{"a": 1}')), tool(ROOT, 2, "add", None, '{"a": "1"}')],
        id="a value that became another type is no other value",
    ),
    pytest.param(
        [*turn(1, ("c1", "add", '{"a": 1}')), tool(ROOT, 2, "add", None, '{"kwargs": {"a": 1}}')],
        id="other keys: by name alone",
    ),
    pytest.param(
        [*turn(1, ("c1", "add", '{"a": [1, {"b":')), tool(ROOT, 2, "add", None, ADD)], id="cut arguments: by name alone"
    ),
    pytest.param(
        [
            *turn(1, ("c0", "sh")),
            tool(ROOT, 2, "sh", "c0"),
            *turn(4, ("c0", "sh"), history=["c0"]),
            tool(ROOT, 5, "sh", "c0"),
        ],
        id="ids restart every turn",
    ),
    pytest.param(
        [*turn(1, ("c1", "search"), received=[]), tool(ROOT, 3.5, "x", "c9")], id="asked for, handed over, not cited"
    ),
    pytest.param([chat(ROOT, 1, received=["c1"]), chat(ROOT, 3, received=["c1"]), tool(ROOT, 5, "x")], id="history"),
    pytest.param([*turn(1, ("c1", "transfer_to_bob")), tool(ROOT, 2, "add", "c9")], id="hand-off"),
    pytest.param([*turn(1, ("c1", "add")), tool(ROOT, 2, None)], id="a tool span that says nothing may be it"),
    pytest.param([*turn(1, ("c1", "")), tool(ROOT, 2, "add")], id="a call without a name may be any tool span"),
    pytest.param(
        [*turn(1, ("c0", "sh")), tool(ROOT, 2, "sh", "c0"), *turn(4, ("c0", "sh"), history=["c0"], received=[])],
        id="ids restart every turn: the result of the turn before is not this one's",
    ),
    pytest.param(
        [
            chat(ROOT, 1, asked=[("c1", "sh")]),
            chat(ROOT, 2, asked=[("c2", "sh")]),
            tool(ROOT, 2.5, "sh"),
            chat(ROOT, 3, received=["c2"]),
            tool(ROOT, 5, "sh"),
            chat(ROOT, 9, received=["c1"]),
        ],
        id="of two turns at a time, the one answered first has the first execution",
    ),
]


@pytest.mark.parametrize(("spans", "expected"), MISSES)
def test_a_result_that_no_tool_span_produced_is_missing(spans: list[Span], expected: dict[str, int]) -> None:
    assert missing(*spans) == expected


@pytest.mark.parametrize("spans", SERVED)
def test_nothing_is_missing(spans: list[Span]) -> None:
    assert missing(*spans) == {}


def test_a_call_that_ran_at_the_provider_has_no_span() -> None:
    part = {"id": "s1", "name": "web_search"}
    asker = chat(ROOT, 1)
    asker.attributes = {
        **asker.attributes,
        "gen_ai.output.messages": json.dumps([{"parts": [{"type": "server_tool_call", **part}]}]),
    }
    later = chat(ROOT, 3)
    later.attributes = {
        **later.attributes,
        "gen_ai.input.messages": json.dumps([{"parts": [{"type": "server_tool_call_response", **part}]}]),
    }
    assert calls_of(asker, later, tool(ROOT, 2, "x")) == []


def test_a_name_that_was_never_offered_cannot_be_checked() -> None:
    offered = json.dumps([{"type": "function", "name": "add"}])
    asker = chat(ROOT, 1, asked=[("c1", "ad")], attributes={"gen_ai.tool.definitions": offered})
    (call,) = calls_of(asker, chat(ROOT, 3, received=["c1"]), tool(ROOT, 5, "add", "c2"))
    assert (call.missing, call.unchecked) == (1, "it is not among the recorded tool definitions")


def test_a_tool_span_of_another_id_inside_a_tool_span_is_another_execution() -> None:
    outer = tool(ROOT, 2, "batch", "c1")
    assert missing(*turn(1, ("c1", "batch"), ("c2", "add")), outer, tool(outer, 2, "add", "c2")) == {}


def test_nested_tool_spans_of_one_call_are_one_execution() -> None:
    outer = tool(ROOT, 2, "add", "c1")
    inner = tool(outer, 2, "add", "c1")
    innermost = tool(inner, 2, "add")
    spans = [*turn(1, ("c1", "add"), ("c1", "add")), outer, inner, innermost]
    assert missing(*spans) == {"c1": 1}


def test_a_tool_inside_another_tool_is_a_call_of_its_own() -> None:
    outer = tool(ROOT, 2, "delegate", "c1")
    helper = span("agent", "helper", parent=outer, start=2, end=8)
    spans = [*turn(1, ("c1", "delegate")), outer, helper, *turn(3, ("c2", "delegate"), parent=helper)]
    assert missing(*spans) == {"c2": 1}
    assert missing(*spans, tool(helper, 4, "delegate", "c2")) == {}


def test_two_instrumentations_of_one_call_ask_once() -> None:
    outer = chat(ROOT, 1, asked=[("c1", "add")])
    inner = chat(outer, 1.1, asked=[("c1", "add")], took=0.1)
    later = chat(ROOT, 4, received=["c1"])
    assert missing(outer, inner, later, tool(ROOT, 3, "add", "c1")) == {}
    assert missing(outer, inner, later, tool(ROOT, 3, "x", "c9")) == {"c1": 1}


def test_two_instrumentations_side_by_side_share_a_response() -> None:
    asker, twin = (chat(ROOT, at, asked=[("c1", "add")], attributes={"gen_ai.response.id": "r1"}) for at in (1.0, 1.1))
    later = chat(ROOT, 4, received=["c1"])
    assert missing(asker, twin, later, tool(ROOT, 3, "add", "c1")) == {}
    assert missing(asker, twin, later, tool(ROOT, 3, "x", "c9")) == {"c1": 1}


def test_what_another_agent_receives_is_history_to_it() -> None:
    triage = span("agent", "triage", parent=ROOT, end=3)
    maths = span("agent", "maths", parent=ROOT, start=3, end=9)
    spans = [chat(triage, 1, asked=[("c1", "to_maths")]), chat(maths, 4, received=["c1"])]
    assert missing(triage, maths, *spans, tool(maths, 5, "add", "c2")) == {}


def test_where_an_agent_hides_what_it_asked_for_new_results_tell() -> None:
    first = chat(ROOT, 1, asked=None, received=["old"])
    later = [chat(ROOT, at, asked=None, received=["old", "c1", "c2"]) for at in (3.0, 5.0)]
    assert missing(first, *later, tool(ROOT, 2, "add", "c1"), tool(ROOT, 2, "add", "c2")) == {}
    assert missing(first, *later, tool(ROOT, 2, "add", "c1")) == {"c2": 1}


def test_without_an_agent_new_results_may_be_another_conversation() -> None:
    spans = [chat(None, 1, asked=None), chat(None, 3, asked=(), received=["c1"]), tool(None, 2, "x", "c9")]
    assert not [call for call in cites(run_of(spans)).calls if call.missing]


def test_a_call_may_be_recorded_without_the_id_of_its_result() -> None:
    asker = chat(ROOT, 1, asked=[(None, "add"), (None, "add")])
    parts = [{"type": "tool_call_response", "id": call_id, "name": "add"} for call_id in ("c1", "c2")]
    later = chat(ROOT, 4)
    later.attributes = {**later.attributes, "gen_ai.input.messages": json.dumps([{"parts": parts}])}
    assert missing(asker, later, tool(ROOT, 2, "add", "c1"), tool(ROOT, 3, "add", "c2")) == {}
    assert missing(asker, later, tool(ROOT, 2, "add", "c1")) == {None: 1}


def test_parallel_agents_may_use_the_same_ids() -> None:
    spans: list[Span] = []
    for offset in (0.0, 0.25):
        worker = span("agent", "worker", parent=ROOT, start=offset, end=10)
        spans += [worker, *turn(1 + offset, ("c0", "sh"), parent=worker), tool(worker, 2 + offset, "sh", "c0")]
    assert missing(*spans) == {}
    assert missing(*spans[:-1]) == {"c0": 1}
    first = spans[0]
    assert missing(*spans[:-1], tool(first, 2.3, "sh", "c0")) == {"c0": 1}


def test_one_id_in_two_turns_at_a_time_cannot_be_checked() -> None:
    spans = [*turn(1, ("c0", "sh")), *turn(1.25, ("c0", "sh"))]
    assert missing(*spans, tool(ROOT, 2, "x", "c9")) == {}


LOSES = [
    pytest.param(
        [*turn(1, ("c0", "sh"), ("c0", "sh"), received=["c0"]), tool(ROOT, 2, "sh", "c0")],
        {"c0": 1},
        id="two calls with one id became one",
    ),
    pytest.param(
        [*turn(1, ("c1", "add"), ("c2", "add"), received=["c1"]), tool(ROOT, 2, "add", "c1")],
        {"c2": 1},
        id="of two calls one neither ran nor came back",
    ),
    pytest.param(
        [chat(ROOT, 1, asked=[("c0", "sh")] * 3), tool(ROOT, 2, "sh", "c0")],
        {"c0": 2},
        id="the last turn of the run, and its tool ran once for three",
    ),
]

KEEPS = [
    pytest.param([chat(ROOT, 1, asked=[("c1", "ask_user")]), tool(ROOT, 2, "x", "c9")], id="handed over at the end"),
    pytest.param([*turn(1, ("c1", "add"), ("c2", "mul"), received=[]), tool(ROOT, 2, "add")], id="started afresh"),
    pytest.param(
        [
            *turn(1, ("c1", "add"), ("c2", "mul"), received=["c1"]),
            tool(ROOT, 2, "add", "c1"),
            tool(ROOT, 2, "mul", "c2"),
        ],
        id="it ran, its answer is on the way",
    ),
    pytest.param([*turn(1, ("c0", "sh"), ("c0", "sh")), *(tool(ROOT, 2, "sh", "c0") for _ in "12")], id="both ran"),
]


@pytest.mark.parametrize(("spans", "expected"), LOSES)
def test_a_call_that_neither_ran_nor_came_back_is_lost(spans: list[Span], expected: dict[str, int]) -> None:
    assert lost(*spans) == expected


@pytest.mark.parametrize("spans", KEEPS)
def test_nothing_is_lost(spans: list[Span]) -> None:
    assert lost(*spans) == {}


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        pytest.param([tool(ROOT, 1, "add", "c1")], "no generation spans", id="no generations"),
        pytest.param(
            [chat(ROOT, 1, asked=None, received=None), tool(ROOT, 2, "add", "c1")],
            "records its messages",
            id="no content",
        ),
        pytest.param(turn(1, ("c1", "add")), "no tool spans at all", id="no tools"),
    ],
)
def test_without_evidence_it_says_so(spans: list[Span], why: str) -> None:
    assert why in cites(run_of([ROOT, *spans])).blind


@pytest.mark.parametrize(
    "hostile", ["[", "[[[[", '[{"parts": 7}]', "\ud83e", 7, None, b"[]", '[{"parts": [{"type": "tool_call"}]}]']
)
def test_hostile_messages_are_unknown(hostile: Any) -> None:
    attributes = {"gen_ai.input.messages": hostile, "gen_ai.output.messages": hostile}
    spans = [chat(ROOT, at, asked=None, received=None, attributes=attributes) for at in (1.0, 2.0)]
    assert not [call for call in cites(run_of([ROOT, *spans, tool(ROOT, 1.5, "add", "c1")])).calls if call.missing]


@pytest.mark.parametrize(
    "hostile",
    [
        "{" * 5000,
        '{"a": ' * 5000 + "1" + "}" * 5000,
        '{"a": NaN}',
        '{"a": ' * 900 + "1" + "}" * 900,
        7,
        "Paris",
        '{"a": "\ud83e"}',
    ],
)
def test_hostile_arguments_are_matched_by_name(hostile: Any) -> None:
    assert missing(*turn(1, ("c1", "add", hostile)), tool(ROOT, 2, "add", None, hostile)) == {}


OPENINFERENCE = "openinference.instrumentation.openai"


def flat(role: str, *, call: tuple[str, str] | None = None, answers: str | None = None) -> dict[str, Any]:
    """A message as OpenInference flattens it, below its index: a call with id and name, or the result of one."""
    made: dict[str, Any] = {"role": role}
    if call is not None:
        made |= {"tool_calls.0.tool_call.id": call[0], "tool_calls.0.tool_call.function.name": call[1]}
    return made if answers is None else {**made, "tool_call_id": answers, "content": "ok"}


def flat_chat(at: float, sent: Sequence[dict[str, Any]] = (), answer: Sequence[dict[str, Any]] = ()) -> Span:
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for prefix, messages in (("llm.input_messages", sent), ("llm.output_messages", answer)):
        for index, message in enumerate(messages):
            attributes |= {f"{prefix}.{index}.message.{key}": value for key, value in message.items()}
    return chat(ROOT, at, asked=None, received=None, scope=OPENINFERENCE, attributes=attributes)


def parts_chat(at: float, sent: Sequence[Any] = (), answer: Sequence[Any] = (), **attributes: Any) -> Span:
    """A generation with these parts in its messages."""
    messages = {"gen_ai.input.messages": sent, "gen_ai.output.messages": answer}
    recorded = {key: json.dumps([{"role": "assistant", "parts": parts}]) for key, parts in messages.items()}
    return chat(ROOT, at, asked=None, received=None, attributes={**recorded, **attributes})


def called(call_id: str | None, name: str, kind: str = "tool_call") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": name}


def result_of(call_id: str | None, response: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": call_id, "response": response, **more}


def mixed(kind: str, call_id: str | None, name: str) -> list[Span]:
    """A turn with a tool of the client, and something of the provider's beside it, whose result came back, too."""
    asked = [called("c1", "add"), called(call_id, name, kind)]
    answered = [*asked, result_of("c1"), {"type": f"{kind}_response", "id": call_id}]
    return [parts_chat(1, answer=asked), parts_chat(4, sent=answered)]


def flat_mixed(call: tuple[str, str]) -> list[Span]:
    asked = [flat("assistant", call=("c1", "add")), flat("assistant", call=call)]
    return [flat_chat(1, answer=asked), flat_chat(4, sent=[*asked, flat("tool", answers="c1")])]


AT_PROVIDER = [
    pytest.param(mixed("server_tool_call", "s1", "web_search"), id="GenAI: OpenAI, Anthropic, Gemini with an id"),
    pytest.param(mixed("server_tool_call", None, "code_execution"), id="GenAI: Gemini's code execution has no id"),
    pytest.param(mixed("web_search_call", "ws_1", ""), id="an item of the Responses API"),
    pytest.param(mixed("code_interpreter_call", "ci_1", ""), id="another item of it"),
    pytest.param(mixed("server_tool_use", "srvtoolu_1", "web_search"), id="a block of Anthropic's"),
    pytest.param(mixed("tool_call", "srvtoolu_1", "web_search"), id="such a block written as a call of the client"),
    pytest.param(flat_mixed(("ws_1", "web_search_call")), id="OpenInference: an item is named after its kind"),
    pytest.param(flat_mixed(("fs_1", "file_search_call")), id="OpenInference: another item"),
    pytest.param(flat_mixed(("srvtoolu_1", "web_search")), id="OpenInference: Anthropic's server tools"),
    pytest.param(flat_mixed(("mcptoolu_1", "add")), id="OpenInference: Anthropic's MCP tools keep their names"),
]


@pytest.mark.parametrize("spans", AT_PROVIDER)
def test_what_ran_at_the_provider_is_neither_missing_nor_lost_and_the_rest_is_judged(spans: list[Span]) -> None:
    healthy = [*spans, tool(ROOT, 2, "add", "c1")]
    assert [(call.call_id, call.executed) for call in calls_of(*healthy)] == [("c1", 1)]
    assert (missing(*healthy), lost(*healthy)) == ({}, {})
    assert missing(*spans, tool(ROOT, 2, "x", "c9")) == {"c1": 1}


def handed(name: str, call_id: str = "h1") -> list[Span]:
    """A turn that calls a tool and hands over, both of which the same agent is told to have been done."""
    return turn(1, ("c1", "add"), (call_id, name))


HAND_OFFS = [
    pytest.param(handed("transfer_to_math_agent"), id="OpenAI Agents, LangGraph supervisor, swarms"),
    pytest.param(handed("transfer_back_to_supervisor"), id="LangGraph supervisor, on the way back"),
    pytest.param(handed("handoff_to_critic"), id="Strands, Microsoft agent-framework"),
]


@pytest.mark.parametrize("spans", HAND_OFFS)
def test_a_hand_off_needs_no_tool_span_and_the_calls_beside_it_do(spans: list[Span]) -> None:
    assert missing(*spans, tool(ROOT, 2, "add", "c1")) == {}
    assert missing(*spans, tool(ROOT, 2, "x", "c9")) == {"c1": 1}
    unchecked = {call.call_id: call.unchecked for call in calls_of(*spans, tool(ROOT, 2, "add", "c1"))}
    assert unchecked == {"c1": "", "h1": "a hand-off runs no tool"}


def test_a_hand_off_that_runs_as_a_tool_is_one() -> None:
    spans = handed("transfer_to_math_agent")
    ran = [tool(ROOT, 2, "add", "c1"), tool(ROOT, 3, "transfer_to_math_agent", "h1")]
    assert [call.executed for call in calls_of(*spans, *ran)] == [1, 1]


def test_a_hand_off_back_that_nobody_asked_for_is_none_that_is_missing() -> None:
    fabricated = [called("h1", "transfer_back_to_supervisor"), result_of("h1")]
    first = chat(ROOT, 1, asked=None, received=["c0"])
    later = parts_chat(4, sent=[*fabricated, called("c1", "add"), result_of("c1")])
    del later.attributes["gen_ai.output.messages"]  # type: ignore[attr-defined]
    assert missing(first, later, tool(ROOT, 2, "add", "c1")) == {}
    assert missing(first, later, tool(ROOT, 2, "x", "c9")) == {"c1": 1}


DEFINITIONS = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "add"}])}
OUTPUT_TOOL = {
    "gen_ai.tool.definitions": json.dumps([{"name": "add"}, {"name": "final_result"}]),
    "model_request_parameters": json.dumps({"output_tools": [{"name": "final_result"}]}),
}


@pytest.mark.parametrize(
    ("name", "result", "attributes", "scope"),
    [
        pytest.param(
            "ad",
            "Unknown tool name: 'ad'. Available tools: 'add'",
            DEFINITIONS,
            "pydantic-ai",
            id="pydantic-ai: a name that was never offered, asked for again",
        ),
        pytest.param(
            "final_result",
            "1 validation error: degrees",
            OUTPUT_TOOL,
            "pydantic-ai",
            id="pydantic-ai: an output tool, asked for again",
        ),
        pytest.param(
            "lookup",
            "Error: lookup is not a valid tool, try one of [add].",
            DEFINITIONS,
            "opentelemetry.instrumentation.genai.langchain",
            id="LangGraph: a name that was never offered",
        ),
        pytest.param(
            "Weather",
            "Error: Failed to parse structured output for tool 'Weather': 1 validation error.\n Please fix.",
            {"gen_ai.tool.definitions": json.dumps([{"name": "add"}, {"name": "Weather"}])},
            "opentelemetry.instrumentation.genai.langchain",
            id="LangChain: an answer by the tool strategy, asked for again",
        ),
        pytest.param(
            "Weather",
            "Error: Model incorrectly returned multiple structured responses (Weather, Weather) when only one is",
            {"gen_ai.tool.definitions": json.dumps([{"name": "add"}, {"name": "Weather"}])},
            "opentelemetry.instrumentation.genai.langchain",
            id="LangChain: two answers at once",
        ),
        pytest.param(
            "Weather",
            "Returning structured response: city='Paris'",
            {"gen_ai.tool.definitions": json.dumps([{"name": "add"}, {"name": "Weather"}])},
            "opentelemetry.instrumentation.genai.langchain",
            id="LangChain: the answer of a subagent, which the next one is told",
        ),
    ],
)
def test_a_call_that_runs_no_tool_is_told_apart_and_others_of_the_turn_are_judged(
    name: str, result: str, attributes: dict[str, Any], scope: str
) -> None:
    asked = [called("c1", "add"), called("c2", name)]
    spans = [
        parts_chat(1, answer=asked, **attributes),
        parts_chat(4, sent=[*asked, result_of("c1"), result_of("c2", result)], **attributes),
    ]
    for one in spans:
        one.scope = scope
    assert (missing(*spans, tool(ROOT, 2, "add", "c1")), lost(*spans, tool(ROOT, 2, "add", "c1"))) == ({}, {})
    assert missing(*spans, tool(ROOT, 2, "x", "c9")) == {"c1": 1}
    offered = parts_chat(4, sent=[*asked, result_of("c1"), result_of("c2", "rain")])
    assert missing(parts_chat(1, answer=asked), offered, tool(ROOT, 2, "add", "c1")) == {"c2": 1}


def test_the_last_tool_of_smolagents_is_one_that_runs() -> None:
    spans = turn(1, ("c1", "final_answer"))
    assert missing(*spans, tool(ROOT, 2, "final_answer")) == {}
    assert missing(*spans, tool(ROOT, 2, "search")) == {"c1": 1}


def test_equal_calls_at_once_need_as_many_executions() -> None:
    spans = turn(1, ("c1", "add", ADD), ("c2", "add", ADD), ("c3", "add", ADD))
    ran = [tool(ROOT, 2, "add", call_id, ADD) for call_id in ("c1", "c2", "c3")]
    assert missing(*spans, *ran) == {}
    assert missing(*spans, *ran[:-1]) == {"c3": 1}
    nameless = [tool(ROOT, 2, "add", None, ADD) for _ in range(3)]
    assert missing(*spans, *nameless) == {}
    assert sum(missing(*spans, *nameless[:-1]).values()) == 1


def test_results_may_come_in_another_order() -> None:
    spans = turn(1, ("c1", "add"), ("c2", "mul"), received=["c2", "c1"])
    ran = [tool(ROOT, 3, "add", "c1"), tool(ROOT, 2, "mul", "c2")]
    assert missing(*spans, *ran) == {}
    assert missing(*spans, *ran[1:]) == {"c1": 1}


def test_an_id_of_an_earlier_turn_is_a_call_of_its_own() -> None:
    first, second = turn(1, ("c0", "sh")), turn(4, ("c0", "sh"), history=["c0"])
    ran = [tool(ROOT, 2, "sh", "c0"), tool(ROOT, 5, "sh", "c0")]
    assert missing(*first, *second, *ran) == {}
    assert missing(*first, *second, *ran[1:]) == {"c0": 1}


def test_a_result_that_the_client_made_up_is_missing() -> None:
    spans = [chat(ROOT, 1, asked=[("c1", "add")]), parts_chat(4, sent=[called("c1", "add"), result_of("c1", "42")])]
    assert missing(*spans, tool(ROOT, 2, "add", "c1")) == {}
    assert missing(*spans, tool(ROOT, 2, "search", "c0")) == {"c1": 1}


def test_with_content_off_ids_and_names_are_enough_where_they_stay() -> None:
    spans = turn(1, ("c1", "add"))
    assert missing(*spans, tool(ROOT, 2, "add", "c1")) == {}
    bare = [chat(ROOT, at, asked=None, received=None) for at in (1.0, 3.0)]
    assert "records its messages" in cites(run_of([ROOT, *bare, tool(ROOT, 2, "x", "c9")])).blind


def test_messages_beyond_one_that_was_not_written_are_read() -> None:
    asker = flat_chat(1, answer=[flat("assistant"), {}, flat("assistant", call=("c1", "add"))])
    later = flat_chat(4, sent=[flat("user"), {}, flat("tool", answers="c1")])
    assert missing(asker, later, tool(ROOT, 2, "add", "c1")) == {}
    assert missing(asker, later, tool(ROOT, 2, "x", "c9")) == {"c1": 1}


CITED = {
    "langchain-genai_content/basic": (2, 2),
    "langchain-oi/parallel": (3, 3),
    "langchain-tl/basic": (2, 2),
    "llama-index-oi/basic": (2, 2),
    "openai-agents-oi/basic": (2, 2),
    "openai-agents-oi/chatstream": (2, 2),
    "openai-agents-tl/chatmodel": (2, 2),
    "openai-agents-tl/handoff": (1, 1),
    "openai-genai_content/root": (2, 2),
    "openai-oi/root": (2, 2),
    "openai-tl/root": (2, 2),
    "openai-v2exp_content/root": (2, 2),
    "pydantic-ai-def/basic": (2, 2),
    "pydantic-ai-nocontent/basic": (2, 2),
    "pydantic-ai-v2fmt/basic": (2, 2),
    "strands-def/basic": (2, 2),
    "strands-exp/basic": (2, 2),
    "strands-exptools/basic": (2, 2),
}
"""How many results the model was given, and how many of these calls tool spans show: one recording a dialect."""


@pytest.mark.parametrize("name", CITED)
def test_every_cited_call_of_a_recording_has_its_tool_span(name: str) -> None:
    runs, _ = recorded_runs(recordings.spans(name), starts_known=True)
    calls = [call for run in runs for call in cites(run).calls if not call.unchecked]
    cited = [call for call in calls if call.answered]
    assert (sum(call.answered for call in cited), sum(call.executed for call in cited)) == CITED[name]


@pytest.mark.parametrize("name", recordings.names())
def test_no_recording_with_messages_and_tool_spans_is_left_out(name: str) -> None:
    runs, _ = recorded_runs(recordings.spans(name), starts_known=True)
    for run in runs:
        found = cites(run)
        turns = [dialect_of(span).turn(span) for span in run.of_role("generation")]
        is_told = any(turn.asked for turn in turns)
        assert not (found.blind and is_told and run.of_role("tool"))
        doubtful = [call.unchecked for call in found.calls if call.unchecked and call.missing]
        assert doubtful == []


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Span], list[Span]]:
    """A healthy conversation whose ids restart every turn or not, whose tool spans carry ids or not: others, tools."""
    fresh, with_ids = draw(st.booleans()), draw(st.booleans())
    spans: list[Span] = []
    tools: list[Span] = []
    history: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(["add", "mul"]), max_size=3))
        asked = [(f"c{number if fresh else ''}_{place}", name) for place, name in enumerate(names)]
        spans.append(chat(ROOT, number * 4, asked=asked, received=history))
        tools += [tool(ROOT, number * 4 + 1, name, call_id if with_ids else None) for call_id, name in asked]
        history += [call_id for call_id, _ in asked]
    spans.append(chat(ROOT, 20, received=history))
    return spans, tools


@given(conversations(), st.data())
def test_a_healthy_conversation_misses_nothing_and_without_one_tool_span_misses_one(
    conversation: tuple[list[Span], list[Span]], data: st.DataObject
) -> None:
    spans, tools = conversation
    if not tools:
        return
    assert missing(*spans, *tools) == {}
    assert lost(*spans, *tools) == {}
    if len(tools) > 1:
        gone = data.draw(st.sampled_from(tools))
        assert sum(missing(*spans, *(one for one in tools if one is not gone)).values()) == 1
