"""The evidence by which a parentless tree belongs to a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spangate._forest.strays import belongs, call_ids_of
from spangate._records import Span
from tests.spans import run_of, span

ID = "gen_ai.tool.call.id"
RESPONSE = "gen_ai.response.id"


def used(tokens_in: Any, tokens_out: Any) -> dict[str, Any]:
    return {"gen_ai.usage.input_tokens": tokens_in, "gen_ai.usage.output_tokens": tokens_out}


def call(start: float = 2.0, end: float | None = 3.0, **fields: Any) -> Span:
    fields["attributes"] = {"gen_ai.operation.name": "chat", **fields.get("attributes", {})}
    return span("generation", "chat", start=start, end=end, **fields)


def program(call_id: Any) -> Span:
    return span("process", attributes={"process.exit.code": 0, ID: call_id})


def citing(*call_ids: str) -> Span:
    parts = [{"type": "tool_call_response", "id": call_id, "response": "ok"} for call_id in call_ids]
    return call(attributes={"gen_ai.input.messages": json.dumps([{"role": "tool", "parts": parts}])})


BELONGS = [
    pytest.param([span("tool")], [span("agent")], id="a tool works for somebody"),
    pytest.param([call(), span("tool")], [span("agent")], id="a tool below a model call"),
    pytest.param([program("c1")], [citing("c0", "c1")], id="the run cites the program's call"),
    pytest.param(
        [call(attributes={RESPONSE: "r1"})], [call(attributes={RESPONSE: "r1"})], id="the same response, seen twice"
    ),
    pytest.param(
        [call(2.0, 3.0, attributes=used(7, 3))], [call(1.0, 4.0, attributes=used(7, 3))], id="inside the same call"
    ),
    pytest.param(
        [call(2.0, 3.0, attributes=used(7, 3))], [call(2.0, 3.0, attributes=used(7, 3))], id="at the very same times"
    ),
]
DOES_NOT = [
    pytest.param([call()], [span("agent")], id="a model call beside the agent"),
    pytest.param([program("c2")], [citing("c1")], id="a program that nobody cites"),
    pytest.param([program(None)], [citing("c1")], id="a program without a call"),
    pytest.param([call(attributes={RESPONSE: "r1"})], [call(attributes={RESPONSE: "r2"})], id="another response"),
    pytest.param([call()], [call()], id="no response is no evidence"),
    pytest.param([call(2.0, 3.0)], [call(1.0, 4.0)], id="no usage is no evidence"),
    pytest.param(
        [call(2.0, 3.0, attributes=used(0, 0))], [call(1.0, 4.0, attributes=used(0, 0))], id="nor is a usage of zero"
    ),
    pytest.param(
        [call(2.0, 3.0, attributes=used(7, 3))], [call(1.0, 4.0, attributes=used(7, 4))], id="inside, but used less"
    ),
    pytest.param(
        [call(2.0, 5.0, attributes=used(7, 3))], [call(1.0, 4.0, attributes=used(7, 3))], id="longer than the call"
    ),
    pytest.param(
        [call(0.5, 3.0, attributes=used(7, 3))], [call(1.0, 4.0, attributes=used(7, 3))], id="earlier than the call"
    ),
    pytest.param(
        [call(2.0, None, attributes=used(7, 3))], [call(1.0, 4.0, attributes=used(7, 3))], id="it is still open"
    ),
    pytest.param(
        [call(2.0, 3.0, attributes=used(7, 3))], [call(1.0, None, attributes=used(7, 3))], id="the call is still open"
    ),
]


@pytest.mark.parametrize(("candidate", "run"), BELONGS)
def test_it_belongs(candidate: list[Span], run: list[Span]) -> None:
    assert belongs(candidate, run_of(run))


@pytest.mark.parametrize(("candidate", "run"), DOES_NOT)
def test_it_does_not(candidate: list[Span], run: list[Span]) -> None:
    assert not belongs(candidate, run_of(run))


@pytest.mark.parametrize("odd", [None, 7.5, [], {}, b"r1", "\ud83e", float("nan")])
def test_odd_values_are_no_evidence_and_no_exception(odd: Any) -> None:
    candidate = [call(attributes={RESPONSE: odd, **used(odd, odd)})]
    run = run_of([call(1.0, 4.0, attributes={**used(odd, 3), "gen_ai.input.messages": odd})])
    assert not belongs(candidate, run)


def test_only_programs_are_asked_for_their_calls() -> None:
    other = span("tool", attributes={ID: "c9", "gen_ai.operation.name": "execute_tool"})
    assert call_ids_of([program("c1"), program(""), program(7), other]) == {"c1", "7"}
