"""Retries: a call that failed is not made again before anything can have changed."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate import judge
from spangate._attempts import declares_change, recorded_call
from spangate._interludes import Interludes
from spangate._records import Role, Span
from spangate._redaction import Redaction
from spangate._run import Run
from spangate.gates.retries import Retries
from tests import recordings
from tests.spans import SECOND, run_of, span

ROOT = span("agent", "agent", end=100.0)
FAILED = {"status": "ERROR"}
LS = {"command": "ls"}


def call(
    start: float,
    end: float | None = None,
    *,
    tool: str = "bash",
    arguments: Any = LS,
    parent: Span = ROOT,
    more: dict[str, Any] | None = None,
    **fields: Any,
) -> Span:
    """Make a call of a tool that takes a second, unless ``end`` says otherwise."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, **(more or {})}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return span(
        "tool",
        f"execute_tool {tool}",
        parent=parent,
        start=start,
        end=end or start + 1,
        attributes=attributes,
        **fields,
    )


def failed(start: float, end: float | None = None, **fields: Any) -> Span:
    return call(start, end, **{**FAILED, **fields})


def program(start: float, *, parent: Span = ROOT, **fields: Any) -> Span:
    return span("process", "make", parent=parent, start=start, end=start + 1, scope="spangate.process", **fields)


CALM = {"mutates": False}
OUTER = call(0, 20, tool="delegate", arguments={})
BROKEN_OUTER = failed(0, 5)
INNER_OUTER = call(1, 5, tool="delegate", arguments={})

FINDS = [
    pytest.param([failed(1), call(2)], id="again at once"),
    pytest.param([failed(1), failed(2)], id="and it fails again"),
    pytest.param([failed(1), call(9)], id="again after a while"),
    pytest.param([call(0), failed(1), call(2)], id="that it had worked before is no excuse"),
    pytest.param([failed(1, arguments={"a": 1, "b": 2}), call(2, arguments={"b": 2, "a": 1})], id="in other order"),
    pytest.param([failed(1, arguments={"token": "a"}), call(2, arguments={"token": "b"})], id="another secret"),
    pytest.param([failed(1, arguments="ls -l"), call(2, arguments="ls -l")], id="a command line"),
    pytest.param([failed(1), call(2, tool="look", more=CALM), call(3)], id="after a tool that changes nothing"),
    pytest.param([failed(1), failed(2, tool="make"), call(3)], id="after another tool that failed"),
    pytest.param([failed(1), span("generation", parent=ROOT, start=2, end=3), call(4)], id="after asking the model"),
    pytest.param([call(0, tool="write"), failed(1), call(2)], id="a change before both"),
    pytest.param([failed(1), call(2), call(2.5, tool="write")], id="a change after both"),
    pytest.param([OUTER, failed(1, parent=OUTER), call(2, parent=OUTER)], id="both inside of a tool"),
    pytest.param([BROKEN_OUTER, program(1, parent=BROKEN_OUTER), call(6)], id="its own program was no change"),
    pytest.param([failed(1, more={"error.type": "TimeoutError"}), call(2)], id="its time was up"),
    pytest.param([failed(1, more={"mutates": True}), call(2)], id="that it changes something itself is no excuse"),
]
STAYS_SILENT = [
    pytest.param([call(1), call(2)], {}, id="no failure"),
    pytest.param([failed(1), call(2, arguments={"command": "pwd"})], {}, id="other arguments"),
    pytest.param([failed(1), call(2, tool="zsh")], {}, id="another tool"),
    pytest.param(
        [failed(1, more={"tool_version": "1"}), call(2, more={"tool_version": "2"})], {}, id="another version"
    ),
    pytest.param([failed(1), call(2, tool="write"), call(3)], {}, id="after another tool"),
    pytest.param([failed(1), call(1.5, 2.5, tool="write"), call(3)], {}, id="one that ran beside it"),
    pytest.param([call(0, 50, tool="serve"), failed(1), call(2)], {}, id="one that runs all the time"),
    pytest.param([failed(1), call(2, end_ns=None, tool="serve"), call(3)], {}, id="one that is still open"),
    pytest.param([failed(1), program(2), call(3)], {}, id="after a program"),
    pytest.param(
        [failed(1), span(parent=ROOT, start=2, end=3, attributes={"op": "write", "path": "a"}), call(4)],
        {},
        id="after a file was written",
    ),
    pytest.param(
        [failed(1), span(parent=ROOT, start=2, end=3, attributes={"mutates": True}), call(4)],
        {},
        id="a declared change",
    ),
    pytest.param(
        [failed(1), failed(2, tool="write", more={"path": "a"}), call(3)], {}, id="a write that failed half way"
    ),
    pytest.param([failed(1, 3), call(2)], {}, id="at the same time"),
    pytest.param([failed(1, arguments={"n": 1}), call(2, arguments={"n": 2})], {}, id="corrected"),
    pytest.param([failed(1, more={"error.type": "ModelRetry"}), call(2)], {}, id="the tool asked for it"),
    pytest.param([failed(1, more={"error.type": "CancelledError"}), call(2)], {}, id="it was cancelled"),
    pytest.param([failed(1), call(2)], {"exempt": ("ba*",)}, id="it is meant"),
    pytest.param([BROKEN_OUTER, failed(2, 3, parent=BROKEN_OUTER)], {}, id="one inside of the other"),
    pytest.param([INNER_OUTER, failed(2, parent=INNER_OUTER), call(6)], {}, id="what it was inside of went well"),
    pytest.param([failed(1)], {}, id="once"),
]


def found(spans: Sequence[Span], **settings: Any) -> list[tuple[str, Span | None]]:
    return [(finding.code, finding.span) for finding in Retries(**settings)(run_of([ROOT, *spans]))]


@pytest.mark.parametrize("spans", FINDS)
def test_finds(spans: list[Span]) -> None:
    repeat = max((one for one in spans if "bash" in one.name), key=lambda one: one.start_ns)
    assert ("retries.repeated_failure", repeat) in found(spans)


@pytest.mark.parametrize(("spans", "settings"), STAYS_SILENT)
def test_stays_silent(spans: list[Span], settings: dict[str, Any]) -> None:
    assert found(spans, **settings) == []


def test_it_names_the_call_that_failed() -> None:
    first, second = failed(1), call(2)
    [finding] = Retries()(run_of([ROOT, first, second]))
    assert finding.detail == f"repeats {first.hex_id}, which failed, and nothing has changed since"


def test_of_three_failures_two_are_repeats() -> None:
    first, second, third = failed(1), failed(2), failed(3)
    assert [one for _, one in found([first, second, third])] == [second, third]


def test_once_it_has_worked_a_failure_before_that_is_forgotten() -> None:
    spans = [failed(1), call(2, more=CALM), call(3, more=CALM)]
    assert [one for _, one in found(spans)] == [spans[1]]


def test_a_call_that_two_instrumentations_recorded_is_repeated_once() -> None:
    first, second = failed(1, 3), failed(4, 6)
    spans = [first, failed(1.5, 2.5, parent=first), second, failed(4.5, 5.5, parent=second)]
    assert found(spans) == [("retries.repeated_failure", second)]


def test_which_keys_are_secret_is_a_setting() -> None:
    spans = [failed(1, arguments={"pin": 1}), call(2, arguments={"pin": 2})]
    assert found(spans) == []
    assert [one for _, one in found(spans, redact=("pin",))] == [spans[1]]


def test_a_run_without_tools_is_not_evaluable() -> None:
    verdict = judge(run_of([ROOT]), [Retries()])
    assert (verdict.gates["retries"], verdict.passed) == ("not_evaluable", True)


def test_nor_is_one_that_does_not_tell_what_its_tools_were_called_with() -> None:
    verdict = judge(run_of([ROOT, failed(1, arguments=None), call(2, arguments=None)]), [Retries()])
    assert verdict.gates["retries"] == "not_evaluable"
    assert verdict.gaps[0].detail.startswith("2 of 2 calls recorded no arguments")


def test_where_some_tell_it_these_are_compared_and_the_others_named() -> None:
    verdict = judge(run_of([ROOT, failed(1), failed(2, arguments=None), call(3)]), [Retries()])
    assert verdict.gates["retries"] == "pass"
    assert [finding.code for finding in verdict.warnings] == ["retries.repeated_failure"]
    assert [(gap.code, gap.detail[:6]) for gap in verdict.gaps] == [("retries.repeated_failure", "1 of 3")]


def test_arguments_do_not_matter_where_nothing_was_called_again() -> None:
    verdict = judge(run_of([ROOT, failed(1, arguments=None)]), [Retries()])
    assert (verdict.gates["retries"], verdict.gaps) == ("pass", ())


@pytest.mark.parametrize("value", [True, "true", "TRUE"])
def test_a_change_may_be_declared_as_a_word(value: object) -> None:
    assert declares_change(span(attributes={"mutates": value})) is True


@pytest.mark.parametrize("value", [None, 1, "perhaps", []])
def test_what_is_neither_true_nor_false_declares_nothing(value: object) -> None:
    assert declares_change(span(attributes={"mutates": value})) is None


REPEATING = {
    *("crewai-oi", "langchain-genai_content", "langchain-oi", "langchain-tl", "llama-index-genai_content"),
    *("llama-index-oi", "openai-agents-genai_content", "openai-agents-oi", "openai-agents-tl", "strands-def"),
}
"""Instrumentations that record arguments, in whose scenario ``fail`` the model asks for the very call that failed."""


def test_in_recorded_runs_it_finds_the_model_that_asks_for_the_same_again() -> None:
    recorded = {name: spans for name in recordings.names() if (spans := recordings.spans(name))}
    found = {
        name for name, spans in recorded.items() for one in Retries()(run_of(spans)) if one.level != "not_evaluable"
    }
    assert {name.partition("/")[0] for name in found} == REPEATING
    assert {name.partition("/")[2].partition("~")[0] for name in found} == {"fail"}


KINDS: list[Role] = ["tool", "tool", "process", "other"]
STATUS = st.sampled_from(["UNSET", "ERROR"])


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw a run in which children lie within their parents."""
    spans = [ROOT]
    for _ in range(draw(st.integers(1, 14))):
        parent = draw(st.sampled_from([one for one in spans if (one.end_ns or 0) - one.start_ns >= 4 * SECOND]))
        low, high = parent.start_ns // SECOND, (parent.end_ns or 0) // SECOND
        start = draw(st.integers(low + 1, high - 2))
        end = draw(st.integers(start + 1, high - 1))
        kind: Role = draw(st.sampled_from(KINDS))
        attributes = draw(st.sampled_from([{}, {"mutates": False}, {"mutates": True}, {"path": "a"}]))
        made = span(kind, parent=parent, start=start, end=end, attributes=attributes, status=draw(STATUS))
        spans.append(made)
    return run_of(spans)


def is_changing(one: Span) -> bool:
    declared = declares_change(one)
    if declared is None:
        declared = True if "path" in one.attributes else one.role in ("tool", "process") and one.status != "ERROR"
    return declared


@given(runs())
def test_between_two_calls_lies_what_neither_contains_them_nor_is_a_part_of_the_first(run: Run) -> None:
    interludes = Interludes(run)
    tools = [one for one in run.of_role("tool") if one.status == "ERROR"]
    for earlier in tools:
        own = {earlier, *run.descendants(earlier)}
        for later in tools:
            if later.start_ns < (earlier.end_ns or 0) or later in own:
                continue
            around = {one for one in run.ancestors(earlier) if (one.end_ns or 0) > later.start_ns}
            between = [
                one
                for one in run.spans
                if is_changing(one)
                and one not in own | around
                and one.start_ns < later.start_ns
                and (one.end_ns or 0) > earlier.start_ns
            ]
            assert interludes.none_between(earlier, later) == (not between)


def test_arguments_do_not_matter_either_where_something_has_changed() -> None:
    spans = [failed(1, arguments=None), call(2, tool="write"), call(3, arguments=None)]
    verdict = judge(run_of([ROOT, *spans]), [Retries()])
    assert (verdict.gates["retries"], verdict.gaps) == ("pass", ())


def seconds(spans: list[Span], repeats: int) -> float:
    run = run_of([ROOT, *spans])
    start = time.process_time()
    assert sum(1 for _ in Retries()(run)) == repeats
    return time.process_time() - start


def test_many_failures_cost_little_more_than_few() -> None:
    def failures(number: int) -> list[Span]:
        return [failed(2 * n, 2 * n + 1, arguments={"n": n // 2}) for n in range(number)]

    few = seconds(failures(1_000), 500)
    assert seconds(failures(20_000), 10_000) < 40 * max(few, 0.005)


def test_one_failure_in_a_long_run_has_the_arguments_of_few_calls_looked_at() -> None:
    spans = [call(2 * n, 2 * n + 1, arguments={"text": "x" * 5_000, "n": n}) for n in range(1_000)]
    spans[500] = failed(1_000, 1_001, arguments={"n": 501})
    start = time.process_time()
    assert len({recorded_call(one, Redaction()) for one in spans}) == 1_000
    assert 4 * seconds(spans, 0) < time.process_time() - start
