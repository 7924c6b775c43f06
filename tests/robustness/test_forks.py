"""Forks: what was held belongs to the parent, and a child starts empty and is judged on its own."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable

import pytest

from spangate._sdk.forks import after_fork
from tests.robustness import children

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


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


class Owner:
    """Something that a child must reset."""

    resets = 0

    def reset(self) -> None:
        type(self).resets += 1


def test_what_is_to_happen_in_a_child_does_not_keep_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    in_child: list[Callable[[], None]] = []
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: in_child.append(after_in_child))
    monkeypatch.setattr(Owner, "resets", 0)
    owner = Owner()
    after_fork(owner.reset)
    in_child[0]()
    assert Owner.resets == 1
    del owner
    gc.collect()
    in_child[0]()
    assert Owner.resets == 1


def test_a_system_without_forks_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    after_fork(Owner().reset)
