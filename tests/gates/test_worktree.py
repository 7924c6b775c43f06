"""Worktree: every change is owned by a closed span, and what a span left is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from spangate._records import ABSENT, Changes, Delta, Span
from spangate._run import Run
from spangate._verdict.digests import policy_digest
from spangate._verdict.levels import Policy
from spangate.gates.worktree import Worktree
from tests.spans import run_of, span

Ledger: TypeAlias = dict[str, Delta]
Disk: TypeAlias = dict[str, str | None]
ROOT = span("agent", "agent", end=100.0)
OLD, NEW, OTHER = "0" * 64, "1" * 64, "2" * 64
APPEARED, CHANGED, GONE = Delta(None, NEW), Delta(OLD, NEW), Delta(OLD, None)


def tool(op: str | None, path: Any = None, after: Any = ABSENT, *, at: float = 1.0, **fields: Any) -> Span:
    attributes = {"op": op, **fields.pop("attributes", {})}
    if path is not None:
        attributes["path"] = path
    if after is not ABSENT:
        attributes["after_hash"] = after
    made = {"scope": "spangate", "start": at, "end": at + 0.5, "attributes": attributes, **fields}
    return span("tool", f"files.{op}", parent=ROOT, **made)


def call(name: str, arguments: str | None = None, **fields: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments
    return span("tool", f"execute_tool {name}", parent=ROOT, attributes=attributes, scope="app", **fields)


def write(path: str = "a", after: Any = NEW, **fields: Any) -> Span:
    return tool("write", path, after, **fields)


def delete(path: str = "a", **fields: Any) -> Span:
    return tool("delete", path, **fields)


def move(source: str, target: str, after: Any = NEW, **fields: Any) -> Span:
    return tool("move", source, after, attributes={"target_path": target}, **fields)


def shell(*outputs: str, **fields: Any) -> Span:
    return tool("run", attributes={"outputs": list(outputs)}, **fields)


FAILED = {"status": "ERROR"}
WRITERS = {"writers": {"write_file": "path"}}
SINCE = {"since_earlier": "too soon"}
FINDS = [
    pytest.param([], {"a": CHANGED}, {}, {}, ["ghost"], id="an edit without a span"),
    pytest.param([], {"a": APPEARED}, {}, {}, ["ghost"], id="a new file without a span"),
    pytest.param([], {"a": GONE}, {}, {}, ["ghost"], id="a deletion without a span"),
    pytest.param([], {"a": Delta(OLD, OLD)}, {}, {}, ["ghost"], id="a mode without a span"),
    pytest.param([write("a")], {"a": CHANGED, "b": CHANGED}, {"a": NEW}, {}, ["ghost"], id="one that no span tells of"),
    pytest.param([write(end=None)], {"a": CHANGED}, {"a": NEW}, {}, ["ghost"], id="a span that never ended"),
    pytest.param([tool("read", "a")], {"a": CHANGED}, {}, {}, ["ghost"], id="a span that only read"),
    pytest.param([write("A")], {"a": CHANGED}, {"A": None}, {}, ["phantom", "ghost"], id="another name by case"),
    pytest.param([write("a")], {}, {"a": OLD}, {}, ["phantom"], id="a write that never was"),
    pytest.param([write("a")], {}, {"a": None}, {}, ["phantom"], id="a new file that never was"),
    pytest.param([delete("a")], {}, {"a": OLD}, {}, ["phantom"], id="a deletion that never was"),
    pytest.param([tool("write", "a", None)], {}, {"a": OLD}, {}, ["phantom"], id="a deletion told as a write"),
    pytest.param([move("a", "b")], {}, {"a": OLD, "b": None}, {}, ["phantom", "phantom"], id="a move that never was"),
    pytest.param([write("a")], {"a": Delta(OLD, OTHER)}, {"a": OTHER}, {}, ["hash_mismatch"], id="other content"),
    pytest.param([write("a")], {"a": GONE}, {"a": None}, {}, ["hash_mismatch"], id="gone after the write"),
    pytest.param([delete("a")], {"a": CHANGED}, {"a": NEW}, {}, ["hash_mismatch"], id="back after the deletion"),
    pytest.param(
        [write(after=OTHER), write(after=NEW, at=2.0)],
        {"a": Delta(OLD, OTHER)},
        {"a": OTHER},
        {},
        ["hash_mismatch"],
        id="what the first of two left",
    ),
    pytest.param(
        [shell("a"), write("a", at=2.0)],
        {"a": CHANGED},
        {"a": OTHER},
        {},
        ["hash_mismatch"],
        id="a pattern, then a lie",
    ),
    pytest.param([shell("dist/*.js")], {"dist/x/a.js": APPEARED}, {}, {}, ["ghost"], id="below what was declared"),
    pytest.param([shell("*", end=None)], {"a": CHANGED}, {}, {}, ["ghost"], id="outputs of a tool that never ended"),
    pytest.param([call("write_file", '{"path": "a"}')], {"a": CHANGED}, {}, {}, ["ghost"], id="a tool of no table"),
    pytest.param([call("grep", '{"path": "a"}')], {"a": CHANGED}, {}, WRITERS, ["ghost"], id="a tool not of the table"),
    pytest.param([], {}, {}, {"require_mutation": True}, ["no_mutation"], id="nothing, where something is required"),
    pytest.param(
        [], {"x.log": CHANGED}, {}, {"require_mutation": True, "allow": ("*.log",)}, ["no_mutation"], id="only a log"
    ),
    pytest.param([], {"a": CHANGED}, {}, {"require_mutation": True}, ["ghost", "no_mutation"], id="only a ghost"),
]
STAYS_SILENT = [
    pytest.param([], {}, {}, {}, id="nothing"),
    pytest.param([write()], {"a": CHANGED}, {"a": NEW}, {"require_mutation": True}, id="a write"),
    pytest.param([write()], {"a": APPEARED}, {"a": NEW}, {}, id="a new file"),
    pytest.param([delete()], {"a": GONE}, {"a": None}, {}, id="a deletion"),
    pytest.param([move("a", "b")], {"a": GONE, "b": APPEARED}, {"a": None, "b": NEW}, {}, id="a move owns both"),
    pytest.param([write()], {"a": Delta(NEW, NEW)}, {"a": NEW}, {}, id="a write that changes the mode alone"),
    pytest.param([write("./a")], {"a": CHANGED}, {"a": NEW}, {}, id="a path in another form"),
    pytest.param([write(), delete(at=2.0)], {}, {"a": None}, {}, id="a file that came and went"),
    pytest.param([write(after=OLD)], {}, {"a": OLD}, {}, id="a write of what was there"),
    pytest.param([write(after=OTHER), write(at=2.0)], {"a": CHANGED}, {"a": NEW}, {}, id="the last of two"),
    pytest.param([write(end=9.0), write(after=OTHER, at=2.0)], {"a": CHANGED}, {"a": NEW}, {}, id="one of two at once"),
    pytest.param([write(**FAILED)], {"a": Delta(OLD, OTHER)}, {"a": OTHER}, {}, id="a write that failed half-way"),
    pytest.param([write(**FAILED)], {}, {"a": OLD}, {}, id="a write that failed and did nothing"),
    pytest.param([delete(**FAILED)], {}, {"a": OLD}, {}, id="a deletion that failed"),
    pytest.param([tool("write", "a")], {"a": CHANGED}, {}, {}, id="a write without a hash"),
    pytest.param([tool("edit", "a", NEW)], {"a": CHANGED}, {"a": NEW}, {}, id="an edit by another word"),
    pytest.param([shell("dist/*.js")], {"dist/a.js": APPEARED}, {}, {"require_mutation": True}, id="a declared output"),
    pytest.param([write(), shell("a", at=2.0)], {"a": CHANGED}, {"a": OTHER}, {}, id="a formatter after a write"),
    pytest.param([shell("a", **FAILED)], {"a": CHANGED}, {}, {}, id="an output of a tool that failed"),
    pytest.param([], {"x/y.log": CHANGED}, {}, {"allow": ("*.log",)}, id="what is allowed"),
    pytest.param([write("sub/x")], {"sub": Delta(OLD, NEW, is_whole=True)}, {"sub/x": NEW}, {}, id="in a submodule"),
    pytest.param([call("write_file", '{"path": "a"}')], {"a": CHANGED}, {}, WRITERS, id="a tool of the table"),
    pytest.param([call("write_file", '{"path": "/r/a"}')], {"a": CHANGED}, {}, WRITERS, id="its absolute path"),
    pytest.param([call("write_file", '{"path": "/x/a"}')], {}, {}, WRITERS, id="a tool that wrote elsewhere"),
    pytest.param(
        [call("write_file", '{"file": {"path": ["a", "b"]}}')],
        {"a": CHANGED, "b": CHANGED},
        {},
        {"writers": {"write_file": "file.path"}},
        id="nested paths",
    ),
]


def run_with(spans: list[Span], deltas: Ledger, on_disk: Mapping[str, str | None], **more: Any) -> Run:
    changes = Changes(root="/r", deltas=deltas, on_disk=on_disk, **more)
    return replace(run_of([ROOT, *spans]), changes=changes)


def judged(run: Run, settings: dict[str, Any]) -> list[str]:
    return [found.code.removeprefix("worktree.") for found in Worktree(repo="/r", **settings)(run)]


@pytest.mark.parametrize(("spans", "deltas", "on_disk", "settings", "codes"), FINDS)
def test_finds(spans: list[Span], deltas: Ledger, on_disk: Disk, settings: dict[str, Any], codes: list[str]) -> None:
    assert judged(run_with(spans, deltas, on_disk), settings) == codes


@pytest.mark.parametrize(("spans", "deltas", "on_disk", "settings"), STAYS_SILENT)
def test_stays_silent(spans: list[Span], deltas: Ledger, on_disk: Disk, settings: dict[str, Any]) -> None:
    assert judged(run_with(spans, deltas, on_disk), settings) == []


NOT_EVALUABLE = [
    pytest.param(run_of([ROOT]), {}, "recording", id="a recording"),
    pytest.param(run_with([], {}, {}, unknown="git is not installed"), {}, "git is not installed", id="no git"),
    pytest.param(run_with([], {"a": CHANGED}, {}, **SINCE), {}, "too soon", id="a ghost, perhaps of an earlier time"),
    pytest.param(
        run_with([call("write_file")], {"a": CHANGED}, {}), WRITERS, "does not say", id="a ghost of a mute tool"
    ),
    pytest.param(run_with([call("write_file")], {}, {}), WRITERS, "does not say", id="a mute tool"),
    pytest.param(run_with([call("write_file", "{}")], {}, {}), WRITERS, "does not say", id="arguments without a path"),
    pytest.param(
        run_with([call("write_file"), call("write_file")], {"a": CHANGED}, {}),
        {**WRITERS, "require_mutation": True},
        "does not say",
        id="a mute tool that may have changed something",
    ),
]


@pytest.mark.parametrize(("run", "settings", "why"), NOT_EVALUABLE)
def test_is_not_evaluable(run: Run, settings: dict[str, Any], why: str) -> None:
    (found,) = Worktree(repo="/r", **settings)(run)
    assert (found.code, found.level) == ("worktree.not_evaluable", "not_evaluable")
    assert why in found.detail


def test_what_is_owned_since_an_earlier_time_is_owned() -> None:
    assert judged(run_with([write()], {"a": CHANGED}, {"a": NEW}, **SINCE), {}) == []


def test_what_a_tool_of_the_table_wrote_is_held_to_what_was_there_when_it_ended() -> None:
    wrote = call("write_file", '{"path": "link/../a"}')
    written = {(wrote.trace_id, wrote.span_id): [("a", NEW)]}
    assert judged(run_with([wrote], {"a": CHANGED}, {"a": NEW}, written=written), WRITERS) == []
    assert judged(run_with([wrote], {"a": CHANGED}, {"a": OTHER}, written=written), WRITERS) == ["hash_mismatch"]


def test_case_is_ignored_where_the_file_system_does() -> None:
    told = [write("README"), shell("DIST/*")]
    deltas = {"readme": CHANGED, "dist/x": APPEARED, "x.LOG": CHANGED}
    run = run_with(told, deltas, {"README": NEW}, ignores_case=True)
    assert judged(run, {"allow": ("*.log",)}) == []


def test_a_name_with_a_line_end_does_not_end_a_line() -> None:
    (found,) = Worktree(repo="/r")(run_with([], {"a\nb": CHANGED}, {}))
    assert "\n" not in found.detail


@pytest.mark.parametrize("settings", [{"repo": ""}, {"repo": ".", "writers": {"write_file": ""}}])
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"repo|writers"):
        Worktree(**settings)


def test_where_the_tree_lies_is_no_part_of_the_policy() -> None:
    gates = [Worktree(repo=repo, ignored=ignored) for repo in "ab" for ignored in (True, False)]
    digests = {policy_digest([gate], Policy()) for gate in gates}
    assert len(digests) == 2
