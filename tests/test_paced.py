"""Walks with rests: nothing is left out, and a rest comes every few items."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._pace import REST_S, SLICE_S, Pace
from spangate._paced import STRIDE, Paced, paced, paced_like
from spangate._run import Run
from tests.spans import span


class Rests:
    """Counts how often somebody rested."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@given(st.lists(st.integers(), max_size=3 * STRIDE), st.slices(3 * STRIDE))
def test_it_holds_what_a_list_holds(items: list[int], part: slice) -> None:
    walked = Paced(items, Rests())
    assert list(walked) == items
    assert len(walked) == len(items)
    assert walked[part] == items[part]
    assert list(reversed(walked)) == items[::-1]


@given(st.integers(0, 5 * STRIDE))
def test_a_rest_follows_every_few_items(length: int) -> None:
    rests = Rests()
    walk = iter(Paced(range(length), rests))
    for number, _ in enumerate(walk):
        assert rests.count == number // STRIDE


def test_a_rest_may_raise_and_ends_the_walk_then() -> None:
    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        list(Paced(range(STRIDE), stop))


def test_few_items_are_walked_as_they_are() -> None:
    few = list(range(STRIDE))
    assert paced(few, Rests()) is few
    assert isinstance(paced([*few, 0], Rests()), Paced)


def test_what_follows_from_paced_items_is_paced_like_them() -> None:
    rests = Rests()
    many = list(range(STRIDE + 1))
    found = paced_like(many, Paced(many, rests))
    assert list(found) == many
    assert rests.count == 2
    assert paced_like(many, many) is many


def test_a_run_is_walked_with_rests_by_role_too() -> None:
    rests = Rests()
    root = span("agent")
    tools = [span("tool", parent=root) for _ in range(2 * STRIDE)]
    run = Run("run", root, paced([root, *tools], rests))
    assert run.of_role("tool")[:] == tools
    before = rests.count
    assert list(run.of_role("tool")) == tools
    assert rests.count == before + 2
    assert list(run.of_role("generation")) == []


def test_a_thread_rests_when_it_has_worked_for_long_and_nothing_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    now, hurried = 0.0, False
    rested: list[float] = []
    monkeypatch.setattr("spangate._pace.time", SimpleNamespace(perf_counter=lambda: now, sleep=rested.append))
    pace = Pace(lambda: hurried)
    pace()
    assert rested == []
    now = SLICE_S
    pace()
    pace()
    assert rested == [REST_S]
    now, hurried = 3 * SLICE_S, True
    pace()
    assert rested == [REST_S]


def collections_while(do: Callable[[], None]) -> list[int]:
    """Return the generations that were collected meanwhile in this thread."""
    found: list[int] = []
    here = threading.get_ident()

    def hear(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and threading.get_ident() == here:
            found.append(info["generation"])

    gc.callbacks.append(hear)
    try:
        do()
    finally:
        gc.callbacks.remove(hear)
    return found


def make_many(pace: Callable[[], None]) -> None:
    """Make very many objects that stay, as judging does."""
    kept: list[Any] = []
    for number in range(400_000):
        kept.append([number])
        if number % STRIDE == 0:
            pace()


@pytest.fixture
def _small_heap() -> Iterator[None]:
    """Have the collector see few objects, so that many new ones make a full collection due."""
    gc.freeze()
    gc.collect()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_small_heap")
def test_a_thread_that_keeps_pace_begins_no_full_collection() -> None:
    assert 2 in collections_while(lambda: make_many(lambda: None))
    paced_ones = collections_while(lambda: make_many(Pace(lambda: True)))
    assert 2 not in paced_ones
    assert {0, 1} <= set(paced_ones)


@pytest.mark.parametrize("off", [gc.disable, partial(gc.set_threshold, 0)])
def test_a_program_without_automatic_collections_gets_none(off: Callable[[], None]) -> None:
    thresholds = gc.get_threshold()
    off()
    try:
        assert collections_while(lambda: make_many(Pace(lambda: True))) == []
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
