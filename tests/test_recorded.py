"""Runs in recordings: the rules of the live side, as far as a recording shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spangate import judge
from spangate._forest.recorded import recorded_runs
from spangate._records import Span
from spangate._run import Run
from tests import recordings
from tests.spans import span

AGENT = {"gen_ai.operation.name": "invoke_agent"}
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool"}


def made(name: str, attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    return span(name=name, attributes=attributes or {}, **fields)


def shape(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    return [(run.root.name, [member.name for member in run.spans]) for run in runs]


def codes(run: Run) -> list[str]:
    return [note.code for note in run.notes]


def test_a_tree_with_an_agent_is_a_run_and_another_is_outside() -> None:
    agent = made("agent", AGENT)
    chat = made("chat", CHAT, parent=agent)
    job = made("job", trace_id=7)
    runs, outside = recorded_runs([agent, job, chat], starts_known=False)
    assert shape(runs) == [("agent", ["agent", "chat"])]
    assert outside == [job]
    assert (runs[0].trigger, runs[0].starts_known, runs[0].notes) == ("offline", False, [])
    assert (agent.role, chat.role, job.role) == ("agent", "generation", "other")


def test_each_agent_below_a_request_is_a_run() -> None:
    entry = made("GET /", kind="SERVER")
    one = made("one", AGENT, parent=entry)
    query = made("query", parent=entry)
    two = made("two", AGENT, parent=entry)
    runs, outside = recorded_runs([entry, one, query, two], starts_known=True)
    assert shape(runs) == [("one", ["one"]), ("two", ["two"])]
    assert outside == [entry, query]
    assert all(run.starts_known for run in runs)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"parent_id": 99}, ["forest.foreign_parent"], id="recorded nowhere"),
        pytest.param({"parent_id": 99, "parent_sampled": False}, ["forest.parent_unsampled"], id="not sampled"),
        pytest.param({"parent_id": 99, "parent_remote": True}, [], id="remote"),
        pytest.param({}, [], id="none"),
    ],
)
def test_a_root_is_told_what_became_of_its_parent(fields: dict[str, Any], told: list[str]) -> None:
    runs, _ = recorded_runs([made("agent", AGENT, **fields)], starts_known=False)
    assert [codes(run) for run in runs] == [told]


def test_a_parent_that_is_missing_from_a_trace_with_a_root_is_missed_by_the_forest_gate() -> None:
    agent = made("agent", AGENT)
    lost = made("tool", TOOL, parent_id=99)
    runs, _ = recorded_runs([agent, lost], starts_known=False)
    assert shape(runs) == [("agent", ["agent", "tool"])]


def test_a_missing_parent_concerns_its_own_trace_only() -> None:
    agent = made("agent", AGENT)
    other = made("other agent", AGENT, trace_id=7, parent_id=99)
    runs, _ = recorded_runs([agent, other], starts_known=False)
    assert [codes(run) for run in runs] == [[], ["forest.foreign_parent"]]


def test_an_answer_to_a_remote_call_in_the_same_trace_is_a_run_of_its_own() -> None:
    agent = made("agent", AGENT)
    call = made("tools/call", parent=agent)
    answer = made("execute_tool", TOOL, parent=call, parent_remote=True, kind="SERVER")
    runs, _ = recorded_runs([agent, call, answer], starts_known=False)
    assert shape(runs) == [("agent", ["agent", "tools/call"]), ("execute_tool", ["execute_tool"])]


@pytest.mark.parametrize(("its_run", "runs"), [("r1", 1), ("r2", 2), (None, 2)])
def test_what_a_program_of_a_released_run_recorded_is_judged_with_the_run_again(its_run: str | None, runs: int) -> None:
    ours: dict[str, Any] = {"spangate.run_id": "r1"}
    its: dict[str, Any] = {} if its_run is None else {"spangate.run_id": its_run}
    agent = made("agent", AGENT | ours)
    program = made("python", ours, parent=agent)
    chat = made("chat", CHAT | ours, parent=agent)
    inner = made("inner agent", AGENT | its, parent=program, parent_remote=True)
    found, outside = recorded_runs([agent, program, chat, inner], starts_known=False)
    assert len(found) == runs
    assert found[0].run_id == "r1"
    assert not outside


def stamped(runs: Sequence[str | list[str] | None]) -> list[Span]:
    agent = made("agent", AGENT)
    spans = [agent, *(made("chat", CHAT, parent=agent) for _ in runs[1:])]
    return [
        each if run_id is None else replace(each, attributes={**each.attributes, "spangate.run_id": run_id})
        for each, run_id in zip(spans, runs, strict=True)
    ]


def test_a_released_run_keeps_its_id() -> None:
    runs, _ = recorded_runs(stamped(["r1", "r1"]), starts_known=False)
    assert runs[0].run_id == "r1"


@pytest.mark.parametrize("ids", [["r1", "r2"], ["r1", None], [None, None], ["", ""], [["r1"], ["r1"]]])
def test_a_run_without_one_id_gets_one_that_is_the_same_next_time_and_not_the_trace_id(ids: list[Any]) -> None:
    spans = stamped(ids)
    (run,), _ = recorded_runs(spans, starts_known=False)
    (again,), _ = recorded_runs(spans, starts_known=False)
    assert run.run_id == again.run_id
    assert len(run.run_id) == 16
    assert run.run_id not in (run.root.hex_trace_id, *ids)


def test_runs_of_one_trace_have_ids_of_their_own() -> None:
    entry = made("GET /", kind="SERVER")
    runs, _ = recorded_runs(
        [entry, made("chat", CHAT, parent=entry), made("one", AGENT, parent=entry)], starts_known=False
    )
    assert len({run.run_id for run in runs}) == 2


@pytest.mark.parametrize("name", ["refused agent", "passed agent"])
def test_our_verdict_spans_are_no_runs_and_no_roots(name: str) -> None:
    verdict = made(name, {"spangate.verdict": "fail", "openinference.span.kind": "AGENT"}, scope="spangate")
    lost = made("agent", AGENT, parent_id=99)
    runs, outside = recorded_runs([verdict, lost], starts_known=False)
    assert [(run.root.name, codes(run)) for run in runs] == [("agent", ["forest.foreign_parent"])]
    assert outside == [verdict]


def verdict_of(run_id: str, *codes: str, **more: Any) -> Span:
    told = {"spangate.verdict": "fail", "spangate.run_id": run_id, "spangate.findings": list(codes), **more}
    return made("refused agent", told, scope="spangate")


def test_pieces_of_a_run_that_left_in_part_do_not_pass_for_runs() -> None:
    pieces = [made("tool", {**TOOL, "spangate.run_id": "r1"}, parent_id=99) for _ in range(2)]
    runs, _ = recorded_runs([*pieces, verdict_of("r1", "export.partial", "forest.late_child")], starts_known=False)
    assert [codes(run) for run in runs] == [["export.partial", "forest.foreign_parent"]] * 2
    assert all(judge(run, []).verdict == "fail" for run in runs)


def test_a_run_whose_verdict_was_turned_later_is_told_why() -> None:
    (agent,) = stamped(["r1"])
    later = verdict_of("r2", "forest.late_child", **{"spangate.supersedes": agent.hex_id})
    (run,), _ = recorded_runs([agent, later], starts_known=False)
    assert codes(run) == ["forest.late_child"]


@pytest.mark.parametrize("odd", [None, 7, "export.partial", [7], {"export.partial": 1}, ["completeness.open_span"]])
def test_what_else_earlier_verdicts_say_is_nothing_to_a_run(odd: Any) -> None:
    (agent,) = stamped(["r1"])
    verdict = made("refused agent", {"spangate.verdict": "fail", "spangate.findings": odd}, scope="spangate")
    (run,), _ = recorded_runs([agent, verdict], starts_known=False)
    assert run.notes == []


@pytest.mark.parametrize("name", recordings.names())
def test_every_recorded_span_is_in_one_run_or_outside(name: str) -> None:
    spans = recordings.spans(name)
    runs, outside = recorded_runs(spans, starts_known=True)
    assert sorted(map(id, [*outside, *(member for run in runs for member in run.spans)])) == sorted(map(id, spans))
    assert len({run.run_id for run in runs}) == len(runs)
    for run in runs:
        judge(run, [])
