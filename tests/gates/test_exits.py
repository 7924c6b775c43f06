"""Exits: programs and spans join one to one on the invocation id, and tell the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import pytest

from spangate._exits import exit_report
from spangate._records import Exit, Span
from spangate.gates.exits import Exits
from tests.spans import run_of, span

Fields: TypeAlias = dict[str, Any]
ROOT = span("agent", "agent", end=10.0)


def program(invocation_id: str | None, code: int | None = 0, *, parent: Span = ROOT, **fields: Any) -> Span:
    attributes: dict[str, Any] = {"process.executable.name": "pytest", "process.pid": 7}
    if invocation_id is not None:
        attributes["spangate.invocation_id"] = invocation_id
    if code is not None:
        attributes["process.exit.code"] = code
    attributes |= fields.pop("attributes", {})
    status = "ERROR" if code else "UNSET"
    made = {"status": status, "scope": "spangate.process", "attributes": attributes, **fields}
    return span("process", "pytest", parent=parent, **made)


OK, FAILED = Exit("a", 0), Exit("a", 1)
KILLED, TIMED_OUT = Exit("a", -9), Exit("a", -9, timed_out=True)
LIE: Fields = {"status": "UNSET"}
ELSEWHERE: Fields = {"resource": {"service.instance.id": "child"}}
TIME_UP: Fields = {"attributes": {"error.type": "timeout"}}
CANCELLED: Fields = {"attributes": {"error.type": "cancelled"}}
NEVER_STARTED = span(
    "process",
    "nope",
    parent=ROOT,
    status="ERROR",
    scope="spangate.process",
    attributes={"spangate.invocation_id": "n", "error.type": "FileNotFoundError"},
)

FINDS = [
    pytest.param([], [OK], {}, ["leak"], id="an exit without a span"),
    pytest.param([program("a")], [], {}, ["orphan"], id="a span without an exit"),
    pytest.param([program("b")], [OK], {}, ["leak", "orphan"], id="ids that do not meet"),
    pytest.param([program("a", None)], [FAILED], {}, ["status_mismatch"], id="ok, but the program failed"),
    pytest.param([program("a", 1)], [OK], {}, ["status_mismatch"], id="failed, but the program did not"),
    pytest.param([program("a", 1, **LIE)], [FAILED], {}, ["status_mismatch"], id="the right code under a status of ok"),
    pytest.param([program("a", 2)], [FAILED], {}, ["status_mismatch"], id="another code"),
    pytest.param([program("a", -9)], [TIMED_OUT], {}, ["status_mismatch"], id="an error that was time up"),
    pytest.param([program("a", -9, **TIME_UP)], [KILLED], {}, ["status_mismatch"], id="time up that was not"),
    pytest.param([program("a")], [OK, FAILED], {}, ["duplicate_invocation"], id="one id on two exits"),
    pytest.param([program("a"), program("a")], [OK], {}, ["duplicate_invocation"], id="one id on two spans"),
    pytest.param([program(None, 1, **LIE)], [], {}, ["status_mismatch"], id="a lie of another's making"),
    pytest.param([program("c", 1, **LIE, **ELSEWHERE)], [], {}, ["status_mismatch"], id="a lie from another process"),
    pytest.param([program("c", 1, **LIE)], None, {}, ["status_mismatch", "leak"], id="a lie in a recording"),
    pytest.param([program("a")], [OK], {"max_exits": 0}, ["ceiling"], id="more programs than allowed"),
    pytest.param([program("a", 1)], [FAILED], {"max_error_exits": 0}, ["ceiling"], id="more failures than allowed"),
]
STAYS_SILENT = [
    pytest.param([], [], {}, id="no program at all"),
    pytest.param([], None, {}, id="a recording without programs"),
    pytest.param([program("a")], [OK], {}, id="one that joins"),
    pytest.param([program("a", 1)], [FAILED], {}, id="one that failed and says so"),
    pytest.param([program("a", -9, **TIME_UP)], [TIMED_OUT], {}, id="one whose time was up"),
    pytest.param([program("a", -9, **CANCELLED)], [KILLED], {}, id="one that the run ended itself"),
    pytest.param([program("a", end=None)], [], {}, id="one that still runs, which completeness tells"),
    pytest.param([program(None)], [], {}, id="one of another's making"),
    pytest.param([program("c", **ELSEWHERE)], [], {}, id="one that a child process started"),
    pytest.param([NEVER_STARTED], [], {}, id="one that could not be started and says so"),
    pytest.param([program("a"), program("b", 1)], [OK, Exit("b", 1)], {"max_exits": 2, "max_error_exits": 1}, id="few"),
]


def run_with(spans: Sequence[Span], exits: Sequence[Exit] | None) -> Any:
    return replace(run_of([ROOT, *spans]), exits=exits)


@pytest.mark.parametrize(("spans", "exits", "settings", "codes"), FINDS)
def test_finds(spans: list[Span], exits: list[Exit] | None, settings: dict[str, Any], codes: list[str]) -> None:
    assert [found.code for found in Exits(**settings)(run_with(spans, exits))] == [f"exits.{code}" for code in codes]


@pytest.mark.parametrize(("spans", "exits", "settings"), STAYS_SILENT)
def test_stays_silent(spans: list[Span], exits: list[Exit] | None, settings: dict[str, Any]) -> None:
    assert list(Exits(**settings)(run_with(spans, exits))) == []


def tool(name: str, status: str = "UNSET") -> Span:
    return span("tool", name, parent=ROOT, status=status, attributes={"gen_ai.tool.name": name}, scope="app")


def disagreeing(status: str, codes: Sequence[int], process_tools: tuple[str, ...] = ()) -> list[tuple[str, str | None]]:
    """Return the findings about a tool that ran one program after the other."""
    shell = tool("bash", status)
    programs = [program(str(n), code, parent=shell, start=n, end=n + 1.0) for n, code in enumerate(codes)]
    exits = [Exit(str(n), code) for n, code in enumerate(codes)]
    found = Exits(process_tools=process_tools)(run_with([shell, *programs], exits))
    return [(finding.code, finding.level) for finding in found]


def test_a_tool_that_did_not_fail_around_a_program_that_did_is_a_warning() -> None:
    assert disagreeing("UNSET", [1]) == [("exits.tool_disagrees", None)]


def test_it_fails_where_the_policy_names_the_tool() -> None:
    assert disagreeing("UNSET", [0, 1], ("bash",)) == [("exits.tool_disagrees", "fail")]


@pytest.mark.parametrize(("status", "codes"), [("ERROR", [1]), ("UNSET", [1, 0]), ("UNSET", [0]), ("UNSET", [])])
def test_a_tool_agrees_with_its_last_program(status: str, codes: list[int]) -> None:
    assert disagreeing(status, codes, ("bash",)) == []


def test_two_programs_of_which_one_failed_and_a_lie() -> None:
    spans, exits = [program("a"), program("b", 1)], [OK, Exit("b", 1)]
    report = exit_report(run_with(spans, exits))
    assert report.as_dict() == {
        "exit_count": 2,
        "close_count": 2,
        "leaks": 0,
        "orphans": 0,
        "status_mismatches": 0,
        "duplicates": 0,
        "join_ok": True,
    }
    lie = exit_report(run_with([program("a"), program("b", None, status="OK")], exits))
    assert [(wrong.code, wrong.expected, wrong.told) for wrong in lie.status_mismatches] == [(1, "error", "ok")]
    assert not lie.join_ok


@pytest.mark.parametrize("setting", ["max_exits", "max_error_exits"])
def test_a_ceiling_is_a_whole_number(setting: str) -> None:
    with pytest.raises(ValueError, match=setting):
        Exits(**cast("Any", {setting: -1}))
