"""What varies between runs that nobody has changed anything about is known to vary, as far as it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spangate._run import Run
from spangate.compare import Allowance
from tests.compare.runs import PROMPT, Call, agent, changes, compared

LOOK = ("look", {"shelf": 1})
ANSWER: Call = ("answer", {})


def times(number: int, *, shelf: int = 1) -> Run:
    """Record an agent that looks so often."""
    return agent(*[[("look", {"shelf": shelf})]] * number, [ANSWER])


def answered(words: Any) -> Run:
    return agent([LOOK], [("answer", {"words": words, "tone": "dry"})])


@pytest.mark.parametrize(
    ("looks", "bounded"),
    [pytest.param(3, True, id="inside"), pytest.param(4, True, id="the most"), pytest.param(5, False, id="more")],
)
def test_how_often_a_tool_is_called_may_vary_within_the_band(looks: int, bounded: object) -> None:
    found = compared(times(2), times(looks), baselines=[times(2), times(3), times(4)])
    assert found.bounded is bounded
    assert all(change.varies is bounded for change in found.changes)


def test_where_the_baselines_agree_nothing_varies() -> None:
    found = compared(times(2), times(3), baselines=[times(2), times(2), times(2)])
    assert (found.bounded, [change.varies for change in found.changes]) == (False, [False])


def test_a_key_that_differs_between_baselines_may_differ() -> None:
    baselines = [answered(1), answered(2), answered(3)]
    assert compared(answered(1), answered(50), baselines=baselines).bounded
    other = agent([LOOK], [("answer", {"words": 50, "tone": "wet"})])
    found = compared(answered(1), other, baselines=baselines)
    assert (found.bounded, found.changes[0].keys) == (False, ("tone", "words"))


def test_an_order_that_differs_between_baselines_may_differ() -> None:
    there, back = agent([LOOK], [ANSWER]), agent([ANSWER], [LOOK])
    assert not compared(there, back, baselines=[there, there, there]).bounded
    assert compared(there, back, baselines=[there, there, back]).bounded


def test_an_edge_that_not_all_baselines_have_may_come_and_go() -> None:
    with_answer, without = agent([LOOK], [ANSWER]), agent([LOOK])
    found = compared(without, with_answer, baselines=[without, with_answer, without])
    assert found.bounded
    assert changes(found) == [("added", "answer"), ("edge_added", "invoke_agent cook > execute_tool answer")]
    assert [change.varies for change in found.changes] == [True, True]


def test_what_varies_may_be_allowed_as_well() -> None:
    entry = Allowance(kind="added", name="look")
    found = compared(times(2), times(3), entry, baselines=[times(2), times(3), times(4)])
    assert [(change.varies, change.allowance) for change in found.changes] == [(True, entry)]
    assert found.unused == ()


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_three_are_no_band(number: int) -> None:
    with pytest.raises(ValueError, match=rf"{number} baseline\(s\) are no band: what varies is known from 3 runs"):
        compared(times(1), times(1), baselines=[times(1)] * number)


def test_a_baseline_of_something_else_is_refused() -> None:
    other = agent([LOOK], prompt=[*PROMPT, *PROMPT])
    found = compared(times(1), times(1), baselines=[times(1), other, times(1)])
    assert (found.refusal or "").startswith("baseline 2 (")
    assert ") is none of A's: the runs cannot be compared: prompt (" in (found.refusal or "")


def test_a_baseline_that_is_not_closed_is_refused() -> None:
    run = times(1)
    lost = replace(run, spans=[*run.spans[:-1], replace(run.spans[-1], parent_id=77)])
    found = compared(run, run, baselines=[run, run, lost])
    assert "baseline 3" in (found.refusal or "")
    assert "forest.missing_parent" in (found.refusal or "")
