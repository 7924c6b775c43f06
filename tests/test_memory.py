"""What is remembered of decided runs, how it is found again, and how much of it there may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spangate._buffer.memory import Memory
from spangate._buffer.tree import Decided


def decision(run_id: str, ids: Sequence[int] | None = (1, 2, 3), **fields: Any) -> Decided:
    made: dict[str, Any] = {
        "trace_id": 7,
        "span_ids": None if ids is None else frozenset(ids),
        "start_ns": 100,
        "end_ns": 200,
        "order": 1,
        "has_agent": True,
    }
    return Decided(run_id, **{**made, **fields})


def test_a_member_is_found_by_its_id() -> None:
    memory, run = Memory(), decision("run")
    memory.remember(run, [])
    assert memory.find(7, 2, None) is run
    assert memory.find(7, 4, None) is None
    assert memory.find(8, 2, None) is None


@pytest.mark.parametrize(("start_ns", "found"), [(100, True), (200, True), (99, False), (201, False), (None, False)])
def test_a_member_of_a_long_run_is_found_by_its_time(start_ns: int | None, found: bool) -> None:  # noqa: FBT001  a column
    memory, run = Memory(), decision("run", ids=None)
    memory.remember(run, [])
    assert (memory.find(7, 12345, start_ns) is run) is found


def test_of_two_decisions_the_newer_is_found() -> None:
    memory, old, new = Memory(), decision("old"), decision("new")
    memory.remember(old, [])
    memory.remember(new, [])
    assert memory.find(7, 1, None) is new


def test_an_open_span_is_taken_once() -> None:
    memory, run = Memory(), decision("run")
    memory.remember(run, [2])
    assert memory.open_under(7, 2) is run
    assert memory.open_under(7, 1) is None
    assert memory.take_open(7, 2) is run
    assert memory.take_open(7, 2) is None
    assert memory.open_under(7, 2) is None


def test_spans_that_share_an_id_are_taken_one_by_one() -> None:
    memory, run = Memory(), decision("run")
    memory.remember(run, [2, 2])
    assert [memory.take_open(7, 2) for _ in range(3)] == [run, run, None]


def test_an_id_that_is_open_under_two_decisions_is_taken_under_both() -> None:
    memory, old, new = Memory(), decision("old"), decision("new")
    memory.remember(old, [2])
    memory.remember(new, [2])
    assert [memory.take_open(7, 2) for _ in range(3)] == [new, old, None]


def test_a_span_below_one_that_is_open_follows_it() -> None:
    memory, run = Memory(), decision("run")
    memory.remember(run, [2])
    assert memory.follow(7, 2, 5)
    assert memory.follow(7, 5, 6)
    assert not memory.follow(7, 1, 7)
    assert [memory.take_open(7, span_id) for span_id in (2, 5, 6, 7)] == [run, run, run, None]


def test_what_passed_without_a_run_is_followed_by_none() -> None:
    memory = Memory()
    memory.remember(decision("plain", has_agent=False), [2])
    assert not memory.follow(7, 2, 5)


def test_ids_of_open_spans_are_listed() -> None:
    memory = Memory()
    memory.remember(decision("one"), [1, 2])
    memory.remember(decision("two", trace_id=8), [3])
    assert memory.open_ids() == {(7, 1), (7, 2), (8, 3)}


def test_the_oldest_decision_goes_first() -> None:
    memory = Memory(max_decisions=2)
    runs = [decision(str(number), ids=[number], trace_id=number) for number in range(4)]
    for run in runs:
        memory.remember(run, [run.trace_id])
    assert [memory.find(number, number, None) for number in range(4)] == [None, None, *runs[2:]]
    assert memory.open_ids() == {(2, 2), (3, 3)}


def test_a_run_of_the_programs_own_is_found_by_its_id_until_it_is_forgotten() -> None:
    memory = Memory(max_decisions=1)
    old, again, new = decision("old", opened=["r"]), decision("again", opened=["r"]), decision("new", opened=["n"])
    memory.remember(old, [])
    assert memory.of_run("r") is old
    memory.remember(again, [])
    assert memory.of_run("r") is again
    memory.remember(new, [])
    assert (memory.of_run("r"), memory.of_run("n")) == (None, new)


def test_what_passed_without_a_run_pushes_no_run_out() -> None:
    memory, run = Memory(max_decisions=2), decision("run")
    memory.remember(run, [])
    for number in range(10):
        memory.remember(decision("plain", ids=[number], trace_id=9, has_agent=False), [])
    assert memory.find(7, 1, None) is run
    assert memory.find(9, 9, None) is not None
    assert memory.find(9, 0, None) is None


def test_a_forgotten_decision_takes_no_newer_one_along() -> None:
    memory = Memory(max_decisions=1)
    memory.remember(decision("old"), [2])
    new = decision("new")
    memory.remember(new, [2])
    assert memory.take_open(7, 2) is new


@pytest.mark.parametrize(("order", "seen"), [(1, []), (2, ["long"]), (5, ["long", "short"]), (9, [])])
def test_runs_whose_root_was_open_at_a_moment(order: int, seen: list[str]) -> None:
    memory = Memory()
    memory.remember(decision("long", order=1, end_order=9), [])
    memory.remember(decision("short", order=4, end_order=6), [])
    memory.remember(decision("plain", order=1, end_order=9, has_agent=False), [])
    assert sorted(run.run_id for run in memory.overlapping(order)) == seen
