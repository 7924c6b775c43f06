"""Forks: what was held belongs to the parent, and a child starts empty and is judged on its own."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.robustness import children

pytestmark = pytest.mark.skipif("not hasattr(__import__('os'), 'fork')", reason="this system has no fork")


def test_a_child_exports_nothing_of_its_parents_run_and_the_parent_loses_nothing() -> None:
    child = children.run("fork_open_run")
    assert (child.code, child.errors) == (0, "")
    flushed = child.event("flushed")
    assert (flushed["complete"], flushed["losses"]) == (True, {})
    parent = flushed["pid"]
    assert child.names(pid=parent) == ["before", "inherited", "parent"]
    assert [name for name in child.names() if name not in child.names(pid=parent)] == ["child/0", "child/1", "child"]
    assert child.told == {"parent": "pass", "child": "pass"}


def test_forks_while_the_gate_is_busy_cost_neither_side_anything() -> None:
    child = children.run("fork_busy")
    assert (child.code, child.errors) == (0, "")
    assert [event["status"] for event in child.events("child")] == [0] * 12
    assert all(event["complete"] and not event["losses"] for event in child.events("child flushed"))
    flushed = child.event("flushed")
    assert (flushed["complete"], flushed["losses"]) == (True, {})
    assert set(child.told.values()) == {"pass"}
    once = {f"{who} {number}{part}" for who in ("parent", "child") for number in range(12) for part in ("", "/0", "/1")}
    seen = Counter(name for name in child.names() if not name.startswith("other"))
    assert seen == Counter(dict.fromkeys(once, 1))
    for name in child.names():
        assert (name in child.names(pid=flushed["pid"])) is not name.startswith("child")


def test_the_tasks_of_a_pool_of_forked_processes_are_runs_of_their_own() -> None:
    child = children.run("fork_pool")
    assert (child.code, child.errors) == (0, "")
    assert child.told == {"parent": "pass", **{f"task {number}": "pass" for number in range(6)}}
    assert Counter(child.names()) == Counter(
        ["parent", *(f"task {number}{part}" for number in range(6) for part in ("", "/0"))]
    )
    assert child.event("flushed")["losses"] == {}
