"""What the dialects make of recorded runs of real frameworks."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest

from spangate._dialects import could_be_agent, dialect_of
from spangate._records import ABSENT, AGENT_ROLES, Span
from tests import recordings


class Counted(NamedTuple):
    """What one recording holds. Tokens are the plain sums over its generations, stacked ones counted twice."""

    generations: int
    tools: int
    tools_without_id: int
    tokens: tuple[int, int]
    cited: int | None
    """Distinct call ids that the last turns received; None if no turn records its messages."""


COUNTED = {
    "openai-genai/bare": Counted(3, 0, 0, (420, 63), None),
    "openai-genai/root": Counted(3, 2, 0, (420, 63), None),
    "openai-genai_content/root": Counted(3, 2, 0, (420, 63), 2),
    "openai-genai_content/responses": Counted(3, 0, 0, (390, 63), 2),
    "openai-genai/streamnousage": Counted(2, 0, 0, (0, 0), None),
    "openai-v2/root": Counted(3, 2, 0, (420, 63), None),
    "openai-v2exp_content/root": Counted(3, 2, 0, (420, 63), 2),
    "openai-oi/root": Counted(3, 2, 0, (420, 63), 2),
    "openai-oi/responses": Counted(3, 0, 0, (390, 63), 2),
    "openai-tl/root": Counted(3, 2, 0, (420, 63), 2),
    "openai-tl/responses": Counted(3, 0, 0, (390, 63), 2),
    "anthropic-none/basic": Counted(3, 0, 0, (411, 63), None),
    "anthropic-genai/basic": Counted(6, 0, 0, (822, 126), None),
    "anthropic-genai_content/basic": Counted(6, 0, 0, (822, 126), 2),
    "anthropic-tl/basic": Counted(6, 0, 0, (822, 126), 2),
    "pydantic-ai-def/basic": Counted(3, 2, 0, (420, 63), 2),
    "pydantic-ai-def/parallel": Counted(2, 3, 0, (280, 41), 3),
    "pydantic-ai-def/fail": Counted(3, 2, 0, (420, 63), 2),
    "pydantic-ai-def/underroot": Counted(5, 5, 0, (700, 104), 4),
    "pydantic-ai-def/basic+genai-openai": Counted(6, 2, 0, (840, 126), 2),
    "pydantic-ai-nocontent/basic": Counted(3, 2, 0, (420, 63), 2),
    "pydantic-ai-v2fmt/basic": Counted(3, 2, 0, (420, 63), 2),
    "openai-agents-genai/basic": Counted(0, 2, 2, (0, 0), None),
    "openai-agents-genai/handoff": Counted(0, 1, 1, (0, 0), None),
    "openai-agents-genai/basic+genai-openai": Counted(3, 2, 2, (390, 63), None),
    "openai-agents-oi/basic": Counted(3, 2, 2, (390, 63), 2),
    "openai-agents-oi/chatmodel": Counted(3, 2, 2, (420, 63), 2),
    "openai-agents-oi/fail": Counted(3, 2, 2, (390, 63), 2),
    "openai-agents-tl/basic": Counted(3, 2, 2, (390, 63), 2),
    "openai-agents-tl/handoff": Counted(3, 1, 1, (390, 63), 2),
    "langchain-genai/basic": Counted(3, 2, 0, (420, 63), None),
    "langchain-genai/parallel": Counted(2, 3, 0, (280, 41), None),
    "langchain-genai_content/basic": Counted(3, 2, 0, (420, 63), 2),
    "langchain-oi/basic": Counted(3, 2, 0, (420, 63), 2),
    "langchain-oi/parallel": Counted(2, 3, 0, (280, 41), 3),
    "langchain-oi/fail": Counted(3, 2, 1, (420, 63), 2),
    "langchain-tl/basic": Counted(3, 2, 0, (420, 63), 2),
    "langchain-tl/fail": Counted(3, 2, 0, (420, 63), 2),
    "strands-def/basic": Counted(3, 2, 0, (420, 63), 2),
    "strands-def/fail": Counted(3, 2, 0, (420, 63), 2),
    "strands-def/parallel": Counted(2, 3, 0, (280, 41), 3),
    "strands-exp/basic": Counted(3, 2, 0, (420, 63), 2),
    "strands-exptools/basic": Counted(3, 2, 0, (420, 63), 2),
    "google-adk-def/basic": Counted(3, 2, 0, (420, 78), None),
    "google-adk-def/parallel": Counted(2, 3, 0, (280, 51), None),
    "google-adk-def/fail": Counted(3, 2, 0, (420, 78), None),
    "autogen-def/basic": Counted(0, 2, 0, (0, 0), None),
    "llama-index-genai/basic": Counted(0, 2, 0, (0, 0), None),
    "llama-index-oi/basic": Counted(6, 2, 2, (0, 0), 2),
    "llama-index-oi/nostream": Counted(6, 2, 2, (420, 63), 2),
    "crewai-oi/basic": Counted(0, 2, 2, (0, 0), None),
    "crewai-tl/basic": Counted(0, 0, 0, (0, 0), None),
}

ROLES = {
    "openai-genai/root": {"other": 1, "generation": 3, "tool": 2},
    "pydantic-ai-def/basic": {"agent": 1, "generation": 3, "tool": 2},
    "openai-agents-oi/basic": {"agent": 2, "workflow": 1, "iteration": 3, "generation": 3, "tool": 2},
    "openai-agents-genai/basic": {"workflow": 1, "agent": 1, "tool": 2},
    "openai-agents-tl/handoff": {"workflow": 1, "agent": 2, "generation": 3, "tool": 1, "other": 1},
    "langchain-genai/basic": {"agent": 1, "generation": 3, "tool": 2},
    "langchain-genai/graph": {"workflow": 1, "generation": 1, "tool": 2},
    "langchain-oi/basic": {"workflow": 1, "iteration": 5, "generation": 3, "tool": 2},
    "langchain-tl/basic": {"setup": 1, "agent": 1, "workflow": 1, "iteration": 5, "generation": 3, "tool": 2},
    "langchain-tl/fail": {
        "setup": 1,
        "agent": 1,
        "workflow": 1,
        "iteration": 13,
        "generation": 3,
        "tool": 2,
        "other": 8,
    },
    "strands-def/basic": {"agent": 1, "iteration": 3, "generation": 3, "tool": 2},
    "google-adk-def/parallel": {"workflow": 1, "agent": 1, "generation": 2, "tool": 3, "other": 1},
    "autogen-def/basic": {"setup": 1, "agent": 1, "tool": 2},
    "llama-index-genai/basic": {"agent": 1, "tool": 2},
    "llama-index-oi/basic": {"workflow": 1, "iteration": 3, "generation": 6, "tool": 2, "other": 14},
    "crewai-oi/basic": {"workflow": 1, "agent": 1, "tool": 2},
    "crewai-tl/basic": {"workflow": 2, "agent": 1},
}

REQUESTED = {
    "openai-genai/root": ("gpt-4o-mini", 0.0),
    "openai-v2/root": ("gpt-4o-mini", 0.0),
    "openai-oi/root": ("gpt-4o-mini", 0.0),
    "openai-oi/responses": ("gpt-4o-mini", 0.2),
    "openai-tl/responses": ("gpt-4o-mini", 0.2),
    "anthropic-none/basic": ("claude-sonnet-5", ABSENT),
    "pydantic-ai-def/basic": ("gpt-4o-mini", 0.0),
    "openai-agents-oi/basic": (ABSENT, ABSENT),
    "openai-agents-oi/chatmodel": ("gpt-4o-mini", 0.0),
    "openai-agents-tl/basic": (ABSENT, ABSENT),
    "openai-agents-tl/chatmodel": ("gpt-4o-mini", ABSENT),
    "langchain-oi/basic": ("gpt-4o-mini", 0.0),
    "langchain-tl/basic": ("gpt-4o-mini", 0.0),
    "strands-def/basic": ("gpt-4o-mini", ABSENT),
    "google-adk-def/basic": ("openai/gpt-4o-mini", ABSENT),
    "llama-index-oi/basic": ("gpt-4o-mini", ABSENT),
}

OUTCOMES = {
    "anthropic-genai/cancel": {"chat claude-sonnet-5": "cancelled"},
    "anthropic-genai_content/streambreak": {"chat claude-sonnet-5": "cancelled"},
    "anthropic-tl/timeout": {"anthropic.messages.create": "timeout", "anthropic.chat": "timeout"},
    "autogen-def/fail": {"execute_tool flaky": "error"},
    "google-adk-def/fail": {"execute_tool flaky": "error"},
    "google-adk-def/timeout": {"invoke_workflow weather_agent": "timeout"},
    "langchain-genai/cancel": {"execute_tool slow_tool": "cancelled", "invoke_agent": "cancelled"},
    "langchain-genai_content/recursion": {"invoke_agent": "error"},
    "langchain-genai_content/streambreak": {"invoke_agent": "cancelled"},
    "langchain-oi/fail": {"flaky": "error", "LangGraph": "ok"},
    "langchain-oi/timeout": {"LangGraph": "timeout", "ChatOpenAI": "timeout"},
    "langchain-tl/cancel": {"LangGraph.workflow": "cancelled"},
    "llama-index-genai_content/timeout": {"invoke_agent weather_agent": "timeout"},
    "llama-index-oi/fail": {"FunctionTool.acall": "error", "BaseWorkflowAgent.call_tool": "ok"},
    "openai-agents-genai/boom": {"execute_tool boom": "error", "invoke_workflow Agent workflow": "ok"},
    "openai-agents-oi/maxturns": {"weather_agent": "error", "Agent workflow": "ok"},
    "openai-genai/break": {"chat gpt-4o-mini": "cancelled"},
    "openai-genai/responsescancel": {"chat gpt-4o-mini": "cancelled"},
    "openai-genai/err500": {"chat gpt-4o-mini": "error"},
    "openai-genai/timeout": {"chat gpt-4o-mini": "timeout"},
    "openai-oi/timeout": {"ChatCompletion": "timeout"},
    "openai-oi/responsescancel": {"Response": "cancelled"},
    "pydantic-ai-def/badargs": {"execute_tool add": "control_flow"},
    "pydantic-ai-def/boom": {"execute_tool boom": "error", "invoke_agent weather_agent": "error"},
    "pydantic-ai-def/fail": {"execute_tool flaky": "control_flow"},
    "pydantic-ai-def/limit": {"invoke_agent weather_agent": "error"},
    "pydantic-ai-def/timeout": {"chat gpt-4o-mini": "timeout"},
    "strands-def/cancel": {"invoke_agent weather_agent": "cancelled"},
    "strands-def/fail": {"execute_tool flaky": "error", "invoke_agent weather_agent": "ok"},
    "strands-def/timeout": {"chat": "timeout", "execute_event_loop_cycle": "timeout"},
}


def of_role(spans: list[Span], role: str) -> list[Span]:
    return [span for span in spans if span.role == role]


@pytest.mark.parametrize("name", COUNTED)
def test_models_tools_usage_and_calls_are_read(name: str) -> None:
    spans = recordings.spans(name)
    generations, tools = of_role(spans, "generation"), of_role(spans, "tool")
    usage = [dialect_of(span).usage(span) for span in generations]
    turns = [dialect_of(span).turn(span) for span in generations]
    received = [turn.received for turn in turns if turn.received is not None]
    assert (
        Counted(
            len(generations),
            len(tools),
            sum(dialect_of(span).tool_call(span).call_id is None for span in tools),
            (sum(counts.input or 0 for counts in usage), sum(counts.output or 0 for counts in usage)),
            len({call.call_id for calls in received for call in calls}) if received else None,
        )
        == COUNTED[name]
    )


@pytest.mark.parametrize("name", ROLES)
def test_every_span_has_its_role(name: str) -> None:
    assert Counter(span.role for span in recordings.spans(name)) == ROLES[name]


@pytest.mark.parametrize("name", REQUESTED)
def test_requested_model_and_temperature_are_never_those_of_the_answer(name: str) -> None:
    generations = of_role(recordings.spans(name), "generation")
    requests = [dialect_of(span).request(span) for span in generations]
    assert {(request.model, request.temperature) for request in requests} == {REQUESTED[name]}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes_are_told_by_types_whatever_the_status(name: str) -> None:
    spans = recordings.spans(name)
    for span_name, outcome in OUTCOMES[name].items():
        found = [dialect_of(span).outcome(span) for span in spans if span.name == span_name]
        assert outcome in found, (span_name, found)


@pytest.mark.parametrize(
    "name", [name for name in COUNTED if name.endswith(("/basic", "/root")) and COUNTED[name].cited]
)
def test_results_carry_the_names_and_arguments_of_the_calls_that_they_answer(name: str) -> None:
    spans = recordings.spans(name)
    turns = [dialect_of(span).turn(span) for span in of_role(spans, "generation")]
    longest = max((turn.received or () for turn in turns), key=len)
    assert [call.name for call in longest] == ["get_weather", "add"]
    asked = [call for turn in turns for call in turn.asked or ()]
    assert [(call.name, call.call_id) for call in asked] == [(call.name, call.call_id) for call in longest]


def test_a_turn_that_only_answers_asks_for_nothing_and_one_without_content_is_unknown() -> None:
    told = of_role(recordings.spans("pydantic-ai-def/basic"), "generation")
    silent = of_role(recordings.spans("openai-genai/root"), "generation")
    assert dialect_of(told[-1]).turn(told[-1]).asked == ()
    assert dialect_of(silent[-1]).turn(silent[-1]).asked is None


@pytest.mark.parametrize(
    "name", [name for name in recordings.names() if "+" not in name and not name.startswith("crewai-none")]
)
def test_spans_of_frameworks_have_a_dialect_and_those_of_applications_have_none(name: str) -> None:
    for span in recordings.spans(name):
        bare = span.scope in ("app", "tool-body") and "gen_ai.operation.name" not in span.attributes
        assert (dialect_of(span).name == "plain") == bare
        assert could_be_agent(span.scope) == (span.scope not in ("app", "tool-body"))


@pytest.mark.parametrize("label", recordings.labels(), ids=lambda label: str(label["path"]))
def test_every_recorded_run_is_seen(label: dict[str, str]) -> None:
    roles = {span.role for span in recordings.spans(label["path"])}
    assert bool(roles & AGENT_ROLES) == (label["expect"] != "none")


def test_what_leaks_is_seen_even_with_nothing_on_it() -> None:
    leaked = [
        span
        for name in recordings.names()
        for span in recordings.spans(name)
        if span.is_open and could_be_agent(span.scope)
    ]
    assert {span.role for span in leaked} == {"agent", "workflow", "generation", "iteration"}


def test_spans_take_a_role_at_their_start_that_their_end_does_not_refute() -> None:
    for name in recordings.names():
        for at_start, at_end in zip(recordings.at_start(name), recordings.spans(name), strict=True):
            if at_start.scope != "openinference.instrumentation.langchain":
                assert (at_start.role in AGENT_ROLES) >= (at_end.role in AGENT_ROLES), (name, at_end)


def test_answered_is_told_of_all_generations_that_ended_well() -> None:
    for name in ("openai-genai/root", "strands-def/basic", "openai-oi/root", "google-adk-def/basic"):
        assert all(dialect_of(span).answered(span) for span in of_role(recordings.spans(name), "generation"))
    broken = of_role(recordings.spans("openai-genai/break"), "generation")
    assert not any(dialect_of(span).answered(span) for span in broken)


def test_stacked_instrumentations_share_the_response_id() -> None:
    spans = of_role(recordings.spans("anthropic-tl/basic"), "generation")
    assert Counter(dialect_of(span).response_id(span) for span in spans) == {"msg_0": 2, "msg_1": 2, "msg_2": 2}


@pytest.mark.parametrize("name", ["openai-oi/root", "openai-oi/stream", "langchain-oi/basic", "openai-agents-oi/basic"])
def test_the_response_id_is_found_in_a_recorded_answer(name: str) -> None:
    spans = of_role(recordings.spans(name), "generation")
    found = [dialect_of(span).response_id(span) for span in spans]
    assert all(answer is not None and answer.startswith(("chatcmpl-", "resp_")) for answer in found)


def test_what_was_asked_for_is_the_same_at_start_and_end_where_it_is_there_at_start() -> None:
    for early, late in zip(recordings.at_start("openai-oi/root"), recordings.spans("openai-oi/root"), strict=True):
        if late.role == "generation":
            assert dialect_of(early).request(early) == dialect_of(late).request(late)
