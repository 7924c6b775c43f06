"""What must go because there is too much of it, or for too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spangate._buffer import Buffer
from spangate._buffer.tree import SPAN_OVERHEAD, Tree
from spangate._settle.bounds import Bounds, Scales


class Live:
    """A span that has not ended, as far as the buffer can tell."""

    start_time = 1

    def end(self) -> None: ...


class Held:
    """A buffer and its scales, at a time of their own."""

    def __init__(self, **bounds: Any) -> None:
        self.now = 0.0
        self.buffer = Buffer(lambda: self.now)
        self.scales = Scales(self.buffer, Bounds(**bounds))

    def tree(self, number: int, content: int = 0, *, spans: int = 1) -> Tree:
        """Hold a tree with an open root and so many ended spans, of so many bytes each."""
        tree = self.buffer.open(Tree(number, number, str(number)), Live())
        assert tree is not None
        for one in range(spans):
            self.add(tree, 1000 * number + one, content)
        return tree

    def add(self, tree: Tree, span_id: int, content: int = 0) -> None:
        self.buffer.join(tree.trace_id, span_id, tree.root_id, Live())
        self.buffer.end(tree.trace_id, span_id, ended(tree.trace_id, span_id, content))

    def overdue(self, now: float) -> Mapping[str, str]:
        self.now = now
        self.scales.weigh()
        return {tree.tree_id: trigger for tree, trigger in self.scales.overdue(now)}


def ended(trace_id: int, span_id: int, content: int) -> ReadableSpan:
    context = SpanContext(trace_id, span_id, is_remote=False)
    return ReadableSpan(
        "span",
        context,
        resource=Resource.get_empty(),
        attributes={"x": "x" * (content - 1)} if content else None,
        start_time=1,
        end_time=2,
    )


def test_without_a_reason_nothing_goes() -> None:
    held = Held()
    held.tree(1, 1 << 20)
    assert held.overdue(3600.0) == {}


def test_a_tree_weighs_its_ended_spans_and_the_objects_that_hold_them() -> None:
    held = Held()
    tree = held.tree(1, 100, spans=3)
    held.scales.weigh()
    assert tree.weight == 3 * (100 + SPAN_OVERHEAD)


@pytest.mark.parametrize(
    ("bounds", "now", "expected"),
    [
        pytest.param({"max_run_age_s": 10.0}, 9.9, {}, id="young"),
        pytest.param({"max_run_age_s": 10.0}, 10.0, {"1": "age", "2": "age"}, id="old"),
        pytest.param({"idle_timeout_s": 10.0}, 9.9, {}, id="active"),
        pytest.param({"idle_timeout_s": 10.0}, 10.0, {"1": "idle", "2": "idle"}, id="idle"),
        pytest.param({"max_run_spans": 4}, 1.0, {}, id="few spans"),
        pytest.param({"max_run_spans": 3}, 1.0, {"2": "memory"}, id="many spans"),
        pytest.param({"max_run_spans": 3, "max_run_age_s": 1.0}, 1.0, {"1": "age", "2": "age"}, id="old before large"),
    ],
)
def test_one_tree_of_two_spans_and_one_of_four(bounds: dict[str, Any], now: float, expected: dict[str, str]) -> None:
    held = Held(**bounds)
    held.tree(1)
    held.tree(2, spans=3)
    held.overdue(0.0)
    assert held.overdue(now) == expected


def test_what_changes_is_not_idle() -> None:
    held = Held(idle_timeout_s=10.0)
    tree = held.tree(1)
    held.overdue(0.0)
    held.add(tree, 7)
    assert held.overdue(9.0) == {}
    assert held.overdue(18.9) == {}
    assert held.overdue(19.0) == {"1": "idle"}


def test_the_heaviest_go_until_the_rest_fits() -> None:
    held = Held(max_held_bytes=10_000 + 8 * SPAN_OVERHEAD)
    for number, content in enumerate((1_000, 6_000, 4_000, 2_000), 1):
        held.tree(number, content)
    held.overdue(0.0)
    assert held.overdue(1.0) == {"2": "memory"}


def test_open_spans_weigh_what_their_objects_take() -> None:
    held = Held(max_held_bytes=10 * SPAN_OVERHEAD)
    for number in range(1, 12):
        held.tree(number, spans=0)
    held.overdue(0.0)
    assert held.overdue(1.0) == {"1": "memory"}


def test_idle_ones_go_before_heavy_ones() -> None:
    held = Held(max_held_bytes=5 * SPAN_OVERHEAD + 9_000)
    busy, _ = held.tree(1, 6_000), held.tree(2, 3_000)
    held.overdue(0.0)
    held.add(busy, 7, 1_000)
    assert held.overdue(1.0) == {"2": "memory"}


def test_what_went_for_another_reason_weighs_no_more() -> None:
    held = Held(max_held_bytes=6_000 + 2 * SPAN_OVERHEAD, max_run_spans=3)
    held.tree(1, 2_000, spans=3)
    held.tree(2, 2_000)
    held.scales.weigh()
    gone = []
    for tree, trigger in held.scales.overdue(1.0):
        gone.append((tree.tree_id, trigger))
        held.buffer._forget(tree)
    assert gone == [("1", "memory")]


@pytest.mark.parametrize("name", ["idle_timeout_s", "max_run_age_s", "max_held_bytes", "max_run_spans"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        Bounds(**{name: value})
