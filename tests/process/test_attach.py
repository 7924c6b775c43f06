"""A child continues the trace of the program that started it, and what is malformed costs nobody anything."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace

from spangate import attach_parent
from spangate._attach import attach_if_armed
from tests.process.agent import Agent

CHILD = Path(__file__).with_name("child.py")
GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def child(**more: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        subprocess.run([sys.executable, CHILD], capture_output=True, check=True, **more).stdout
    )
    return told


def test_a_real_child_is_below_the_span_of_its_program(agent: Agent) -> None:
    told: list[dict[str, Any]] = []

    def task() -> None:
        token = context.attach(baggage.set_baggage("tenant", "a b"))
        told.append(child())
        context.detach(token)

    (program,) = agent.does(task).programs
    assert told == [
        {
            "attached": True,
            "trace_id": f"{program.context.trace_id:032x}",
            "parent_id": f"{program.context.span_id:016x}",
            "is_remote": True,
            "baggage": {"tenant": "a b"},
        }
    ]


def test_a_child_of_nobody_is_a_root() -> None:
    assert child(env={})["attached"] is False


@pytest.fixture
def _nothing_current() -> Any:
    token = context.attach(context.Context())
    yield
    context.detach(token)


@pytest.mark.usefixtures("_nothing_current")
@pytest.mark.parametrize("name", ["TRACEPARENT", "traceparent"])
def test_the_current_context_is_the_parents(name: str) -> None:
    assert attach_parent({name: GOOD})
    assert trace.get_current_span().get_span_context().span_id == 0xB7AD6B7169203331
    assert not attach_parent({name: GOOD}), "a second call finds a span that is current"


@pytest.mark.usefixtures("_nothing_current")
@pytest.mark.parametrize(
    "value",
    ["", "nonsense", GOOD.upper(), GOOD.replace("00-", "ff-", 1), f"00-{'0' * 32}-b7ad6b7169203331-01", "ü" * 55],
)
def test_what_is_malformed_is_told_and_left(value: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spangate"):
        assert attach_parent({"TRACEPARENT": value}) is False
    assert "context.traceparent_invalid" in caplog.text
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.usefixtures("_nothing_current")
@pytest.mark.parametrize(("armed", "attached"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_set_up_without_code_attaches_where_it_is_armed(
    armed: str, attached: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", GOOD)
    monkeypatch.setenv("SPANGATE_ATTACH", armed)
    attach_if_armed()
    assert trace.get_current_span().get_span_context().is_valid is attached
