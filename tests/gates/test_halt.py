"""Halt: a loop has a bound, closes each iteration before the next, and says for what reason it stopped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import pytest

from spangate._codes import DEFAULT_LEVELS
from spangate._dialects import classify
from spangate._records import Span
from spangate.gates.halt import Halt
from tests.spans import run_of, span


def ours(name: str, parent: Span | None = None, start: float = 0.0, end: float | None = 1.0, **fields: Any) -> Span:
    """A span of ``spangate.run``."""
    attributes = {f"agent.{field}": value for field, value in fields.items()}
    made = span(name=name, parent=parent, start=start, end=end, scope="spangate", attributes=attributes)
    classify(made)
    return made


def agent(parent: Span | None = None, **fields: Any) -> Span:
    return ours("agent.run", parent, 0.0, 100.0, **{"max_iters": 3, **fields})


def turn(run: Span, number: Any, start: float | None = None, end: float | None = -1.0, **fields: Any) -> Span:
    """Iteration ``number``: it takes that second."""
    began = number if start is None else start
    return ours("agent.iter", run, began, began + 0.9 if end == -1.0 else end, iteration=number, **fields)


def halt(run: Span, reason: Any = "done", last: Any = None, start: float = 50.0, **fields: Any) -> Span:
    told = {"halt_reason": reason, "last_iteration": last, "span_still_open": False, **fields}
    return ours("agent.halt", run, start, start, **{key: value for key, value in told.items() if value is not None})


def tool(parent: Span, name: str, schema: str) -> Span:
    return ours("agent.tool", parent, tool=name, schema_hash=schema)


RUN = agent()
ONE, TWO, THREE = (turn(RUN, number) for number in (1, 2, 3))
INNER = agent(parent=ONE)
UNBOUND = ours("agent.run", None, 0.0, 100.0)

FRAMEWORK = span("agent", "invoke_agent", scope="app")
CYCLES = [
    span("iteration", parent=FRAMEWORK, start=n, end=n + 0.9, attributes={"event_loop.cycle_id": f"c{n}", **follows})
    for n, follows in enumerate(({}, {"event_loop.parent_cycle_id": "c0"}, {"event_loop.parent_cycle_id": "c1"}))
]
STEPS = [span("iteration", f"Step {n}", parent=FRAMEWORK, start=n, end=n + 0.9) for n in (1, 2, 3)]
PARALLEL = [span("iteration", "node", parent=FRAMEWORK, start=n, end=9.0) for n in (1, 2)]
DEMANDED = {"require_halt": True}

FINDS = [
    pytest.param([RUN, ONE], {}, ["missing"], id="no halt"),
    pytest.param([RUN, ONE, halt(RUN, "finished")], {}, ["unknown_reason"], id="a reason that is none"),
    pytest.param([RUN, ONE, halt(RUN, "unknown")], {}, ["unknown_reason"], id="one that was unknown when it was said"),
    pytest.param([RUN, ONE, halt(RUN, None)], {}, ["unknown_reason"], id="a halt without a reason"),
    pytest.param([RUN, ONE, halt(RUN, 7)], {}, ["unknown_reason"], id="a number for a reason"),
    pytest.param([RUN, ONE, halt(RUN), halt(RUN, "timeout")], {}, ["unknown_reason"], id="two reasons"),
    pytest.param([RUN, turn(RUN, 1, end=None), halt(RUN)], {}, ["open_iteration"], id="an iteration never closed"),
    pytest.param([RUN, turn(RUN, 1, end=2.5), TWO, halt(RUN)], {}, ["open_iteration"], id="two at a time"),
    pytest.param([RUN, ONE, halt(RUN, start=1.5)], {}, ["open_iteration"], id="closed after the halt"),
    pytest.param([RUN, ONE, halt(RUN, span_still_open=True)], {}, ["open_iteration"], id="halted around an open span"),
    pytest.param([RUN, ONE, THREE, halt(RUN)], {}, ["iteration_gap"], id="one left out"),
    pytest.param([RUN, ONE, ONE, halt(RUN)], {}, ["open_iteration", "iteration_gap"], id="one counted twice"),
    pytest.param([RUN, TWO, THREE, halt(RUN)], {}, ["iteration_gap"], id="the first left out"),
    pytest.param([RUN, ONE, TWO, halt(RUN, last=3)], {}, ["iteration_gap"], id="the last left out"),
    pytest.param([RUN, ours("agent.iter", RUN, work_id="w"), halt(RUN)], {}, ["iteration_gap"], id="no number"),
    pytest.param([RUN, turn(RUN, "1", 1), halt(RUN)], {}, ["iteration_gap"], id="a number that is none"),
    pytest.param(
        [RUN, ONE, tool(ONE, "search", "a"), TWO, tool(TWO, "search", "b"), halt(RUN)], {}, ["schema_drift"], id="drift"
    ),
    pytest.param([RUN, ONE, TWO, THREE, turn(RUN, 4), halt(RUN)], {}, ["over_budget"], id="more than declared"),
    pytest.param([RUN, ONE, TWO, halt(RUN)], {"max_iters": 1}, ["over_budget"], id="more than the policy allows"),
    pytest.param([RUN, ONE, halt(RUN), INNER, turn(INNER, 1)], {}, ["missing"], id="an agent inside that never halts"),
    pytest.param([FRAMEWORK, *STEPS], DEMANDED, ["missing"], id="a framework where a halt is required"),
    pytest.param([FRAMEWORK, *PARALLEL], DEMANDED, ["missing"], id="a framework's steps may overlap"),
    pytest.param([FRAMEWORK], DEMANDED, ["missing"], id="no loop where a halt is required"),
    pytest.param([FRAMEWORK, STEPS[0], STEPS[2]], DEMANDED, ["missing", "iteration_gap"], id="a step left out"),
    pytest.param([FRAMEWORK, CYCLES[0], CYCLES[2]], DEMANDED, ["missing", "iteration_gap"], id="a cycle left out"),
    pytest.param([FRAMEWORK, *STEPS], {"max_iters": 2}, ["over_budget", "?missing"], id="a framework past the policy"),
]
STAYS_SILENT = [
    pytest.param([RUN, ONE, TWO, THREE, halt(RUN, last=3)], {"max_iters": 3}, id="a loop that used all it had"),
    pytest.param([RUN, turn(RUN, 0), ONE, halt(RUN, last=1)], {}, id="counted from 0"),
    pytest.param([UNBOUND, turn(UNBOUND, 1), halt(UNBOUND)], {}, id="no bound declared"),
    pytest.param([agent(max_iters="3"), ONE, halt(RUN)], {}, id="a bound that is none"),
    pytest.param([RUN, halt(RUN)], {"require_halt": True}, id="a run without iterations that says why it ends"),
    pytest.param([RUN, ONE, halt(RUN), INNER, turn(INNER, 1), halt(INNER)], {}, id="an agent inside, each on its own"),
    pytest.param(
        [RUN, ONE, tool(ONE, "a", "1"), INNER, tool(INNER, "a", "2"), turn(INNER, 1), halt(INNER), halt(RUN)],
        {},
        id="another agent's tool of the same name",
    ),
    pytest.param([RUN, ONE, tool(ONE, "a", "1"), tool(ONE, "b", "2"), halt(RUN)], {}, id="two tools"),
    *(
        pytest.param([RUN, ONE, halt(RUN, reason)], {}, id=reason)
        for reason in ("budget_exhausted", "tool_error", "span_open", "schema_drift", "timeout", "cancelled")
    ),
]


def found(spans: Sequence[Span], settings: dict[str, Any]) -> list[str]:
    findings = Halt(**settings)(run_of(spans))
    return [finding.code.replace("halt.", "?" if finding.level == "not_evaluable" else "") for finding in findings]


@pytest.mark.parametrize(("spans", "settings", "codes"), FINDS)
def test_finds(spans: list[Span], settings: dict[str, Any], codes: list[str]) -> None:
    assert found(spans, settings) == codes
    assert {DEFAULT_LEVELS[f"halt.{code}"] for code in codes if not code.startswith("?")} == {"fail"}


@pytest.mark.parametrize(("spans", "settings"), STAYS_SILENT)
def test_stays_silent(spans: list[Span], settings: dict[str, Any]) -> None:
    assert found(spans, settings) == []


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ([FRAMEWORK], "no span says what an iteration is"),
        ([FRAMEWORK, *STEPS], r"its 3 iteration\(s\) are a framework's, which does not say why it stopped"),
        ([UNBOUND], "no span says what an iteration is"),
    ],
)
def test_no_evidence_is_no_pass(spans: list[Span], why: str) -> None:
    (finding,) = Halt()(run_of(spans))
    assert (finding.code, finding.level) == ("halt.not_evaluable", "not_evaluable")
    assert re.fullmatch(why, finding.detail)


def test_why_a_model_stopped_is_not_why_a_loop_halted() -> None:
    talks = span("generation", parent=STEPS[0], scope="app", attributes={"gen_ai.response.finish_reasons": ["stop"]})
    assert found([FRAMEWORK, *STEPS, talks], DEMANDED) == ["missing"]


def test_iterations_of_a_framework_inside_an_iteration_are_not_counted_among_ours() -> None:
    step = span("iteration", "Step 1", parent=ONE, start=1.1, end=1.2)
    assert found([RUN, ONE, step, step, step, step, TWO, halt(RUN, last=2)], {}) == []


@pytest.mark.parametrize("bound", [-1, 1.5, True])
def test_a_bound_is_a_whole_number(bound: Any) -> None:
    with pytest.raises(ValueError, match="max_iters is"):
        Halt(max_iters=cast("int", bound))
