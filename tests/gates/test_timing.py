"""Timing: no span ends before it starts or has two parents, and little of a run's time is untraced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spangate._records import Span
from spangate.gates.timing import Timing
from tests.spans import run_of, span

ROOT = span("agent", "invoke_agent helper", end=10.0)
WORK = span("generation", "chat", parent=ROOT, start=0.0, end=6.0)
TOOL = span("tool", "search", parent=ROOT, start=6.0, end=9.0)
TWICE = replace(TOOL, parent_id=WORK.span_id)
QUARTER = {"max_untraced_fraction": 0.25}
INVERTED, UNTRACED, NO_TOOL = "timing.inverted_span", "timing.untraced", "timing.no_tool_time"

FINDS = [
    pytest.param([span("tool", start=2.0, end=1.0)], {}, [(INVERTED, "ends 1 s before it starts")], id="a clock back"),
    pytest.param([span("tool", start_ns=10, end_ns=9)], {}, [(INVERTED, "ends 0 µs before it starts")], id="by a ns"),
    pytest.param(
        [WORK, TOOL, TWICE],
        {},
        [("timing.ambiguous_parent", f"recorded below {ROOT.hex_id} and below {WORK.hex_id}")],
        id="one span below two parents",
    ),
    pytest.param(
        [WORK],
        QUARTER,
        [(UNTRACED, "40.0% of 10 s is untraced, more than 25.0%; the longest hole is 4 s between chat and the end")],
        id="a hole at the end",
    ),
    pytest.param(
        [replace(TOOL, end_ns=None), WORK],
        QUARTER,
        [(UNTRACED, "40.0% of 10 s is untraced, more than 25.0%; the longest hole is 4 s between chat and the end")],
        id="an open tool covers nothing",
    ),
    pytest.param(
        [],
        QUARTER,
        [
            (
                UNTRACED,
                "100.0% of 10 s is untraced, more than 25.0%; the longest hole is 10 s between the start and the end",
            )
        ],
        id="an agent that shows no work at all",
    ),
    pytest.param(
        [WORK],
        {"require_tool_time": True},
        [(NO_TOOL, "no tool and no program took any time of its own")],
        id="no tool",
    ),
]
STAYS_SILENT = [
    pytest.param([span("tool", start=1.0, end=2.0)], {}, id="an ordinary span"),
    pytest.param([span("tool", start=1.0, end=1.0)], {}, id="no time at all"),
    pytest.param([span("tool", start=1.0, end=None)], {}, id="still open"),
    pytest.param([], {}, id="untraced time where no ceiling is set"),
    pytest.param([WORK, TOOL], QUARTER, id="little untraced time"),
    pytest.param([WORK], {"max_untraced_fraction": 0.4}, id="just what is allowed"),
    pytest.param([WORK, TOOL, replace(TOOL)], {}, id="a span that merely came twice"),
    pytest.param([TOOL], {"require_tool_time": True}, id="a tool that worked"),
]


@pytest.mark.parametrize(("given", "settings", "found"), FINDS)
def test_finds(given: list[Span], settings: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert [(one.code, one.detail) for one in Timing(**settings)(run_of([ROOT, *given]))] == found


@pytest.mark.parametrize(("given", "settings"), STAYS_SILENT)
def test_stays_silent(given: list[Span], settings: dict[str, Any]) -> None:
    assert list(Timing(**settings)(run_of([ROOT, *given]))) == []


@pytest.mark.parametrize("root", [span("agent", end=None), span("generation", "chat", end=3.0)])
def test_a_ceiling_needs_a_wall_clock_and_something_around_the_calls(root: Span) -> None:
    assert [(one.code, one.level) for one in Timing(max_untraced_fraction=0.25)(run_of([root]))] == [
        ("timing.not_evaluable", "not_evaluable")
    ]


def test_what_another_clock_has_timed_may_fill_a_hole() -> None:
    far = span("tool", parent=ROOT, parent_remote=True, start=50.0, end=53.0)
    assert [one.level for one in Timing(max_untraced_fraction=0.25)(run_of([ROOT, WORK, far]))] == ["not_evaluable"]
    assert [one.code for one in Timing(max_untraced_fraction=0.05)(run_of([ROOT, WORK, far]))] == [UNTRACED]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_ceiling_is_a_fraction(fraction: float) -> None:
    with pytest.raises(ValueError, match="max_untraced_fraction"):
        Timing(max_untraced_fraction=fraction)
