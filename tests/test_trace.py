"""Which tree of a trace holds a span, also where several hold one with the same id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from spangate._buffer.trace import Trace, end_in, is_live, is_open_in, take_one
from spangate._buffer.tree import Tree, Unseen


@dataclass(eq=False)
class Ended:
    start_time: int


@dataclass(eq=False)
class Live:
    start_time: int

    def end(self) -> None: ...


def trees(*roots: int) -> tuple[Trace, list[Tree]]:
    """Make a trace with trees that have these roots."""
    made = [Tree(7, root, f"tree {root}") for root in roots]
    trace = Trace(made[0])
    for tree in made:
        trace.held[tree] = None
        trace.add(tree, tree.root_id, Live(tree.root_id))
    return trace, made


def test_a_span_is_found_in_the_tree_that_holds_it() -> None:
    trace, (one, two, three) = trees(1, 2, 3)
    trace.add(two, 20, Live(0))
    assert [trace.tree_of(span_id) for span_id in (1, 2, 3, 20, 9)] == [one, two, three, two, None]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_an_id_of_several_trees_is_found_in_those_that_are_left(gone: int) -> None:
    trace, made = trees(1, 2, 3)
    for tree in made:
        trace.add(tree, 50, Live(tree.root_id))
    for number in range(3):
        left = made[(gone + number) % 3]
        assert not trace.drop_tree(left) or number == 2
        rest = [made[(gone + more) % 3] for more in range(number + 1, 3)]
        assert trace.tree_of(50) in rest or not rest
        assert set(trace.held) == set(rest)


def test_an_id_goes_to_its_heir_when_one_span_is_dropped() -> None:
    trace, (_, two, three) = trees(1, 2, 3)
    for tree in (two, three):
        trace.add(tree, 50, Live(tree.root_id))
    trace.drop(two, 50)
    assert trace.tree_of(50) is three
    assert trace.shared == {}


def test_a_tree_goes_though_nothing_is_left_of_another_but_an_id_that_both_hold() -> None:
    trace, (one, two) = trees(1, 2)
    for tree in (one, two):
        trace.add(tree, 50, Live(tree.root_id))
    trace.drop(two, two.root_id)
    assert not trace.drop_tree(one)
    assert trace.tree_of(50) is two


def test_a_span_ends_in_the_tree_in_which_it_is_open() -> None:
    trace, made = trees(1, 2, 3)
    for tree in made:
        trace.add(tree, 50, Live(tree.root_id))
    assert [trace.tree_that_ends(50, Ended(start)) for start in (3, 1, 2, 9)] == [made[2], made[0], made[1], made[0]]
    assert trace.tree_that_ends(3, Ended(3)) is made[2]


def test_a_span_that_arrives_twice_is_a_copy_and_another_with_its_id_a_twin() -> None:
    trace, (tree,) = trees(1)
    live = Live(5)
    trace.add(tree, 50, live)
    trace.add(tree, 50, live)
    trace.add(tree, 50, other := Live(6))
    assert (tree.is_doubled, tree.twins, tree.open) == (True, [(50, other)], 3)


@pytest.mark.parametrize("start", [5, 6, 7])
def test_of_twins_the_one_ends_that_started_then(start: int) -> None:
    trace, (tree,) = trees(1)
    for time in (5, 6, 7):
        trace.add(tree, 50, Live(time))
    ended = Ended(start)
    assert is_open_in(tree, 50, ended)
    assert end_in(tree, 50, ended, is_alone=False)
    assert not is_open_in(tree, 50, ended)
    assert not end_in(tree, 50, Ended(start), is_alone=False)
    held = [tree.spans[50], *(twin for _, twin in tree.twins)]
    assert [span.start_time for span in held if not is_live(span)] == [start]


@pytest.mark.parametrize("start", [5, 6, 7])
def test_of_twins_the_one_is_taken_that_was_seen(start: int) -> None:
    trace, (tree,) = trees(1)
    spans = {time: Live(time) for time in (5, 6, 7)}
    for span in spans.values():
        trace.add(tree, 50, span)
    seen = spans.pop(start)
    end_in(tree, 50, now := Ended(start), is_alone=False)
    assert take_one(tree, 50, seen) is now
    assert {tree.spans[50], *(twin for _, twin in tree.twins)} == set(spans.values())


def test_what_is_not_there_is_not_taken() -> None:
    trace, (tree,) = trees(1)
    trace.add(tree, 50, live := Live(5))
    assert take_one(tree, 50, Live(6)) is None
    assert take_one(tree, 51, Live(5)) is None
    assert tree.spans[50] is live
    assert take_one(tree, 50, live) is live
    assert 50 not in tree.spans


@pytest.mark.parametrize(("span", "expected"), [(Live(1), True), (Unseen(1), True), (Ended(1), False)])
def test_what_can_end_is_live(span: Any, expected: bool) -> None:  # noqa: FBT001  a column
    assert is_live(span) is expected
