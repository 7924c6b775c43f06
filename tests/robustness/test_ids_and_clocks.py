"""Ids that repeat and clocks that step: runs stay apart, and nothing is lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import Span
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

from spangate import default_gates
from tests.live.gated import Gated
from tests.robustness import children


class Scripted(IdGenerator):
    """Gives the ids that it is told to give next."""

    def __init__(self) -> None:
        self.trace_id = 7
        self.span_ids: list[int] = []

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_ids.pop(0)


def gated_by(ids: IdGenerator, **settings: Any) -> Gated:
    return Gated(provider={"id_generator": ids}, **settings)


def begin(gated: Gated, ids: Scripted, name: str, span_ids: Sequence[int]) -> list[Span]:
    """Start a run of an agent with tools, which take the given ids."""
    ids.span_ids = list(span_ids)
    agent = gated.start("agent", name)
    return [agent, *(gated.start("tool", f"{name}/{number}", under=agent) for number in range(len(span_ids) - 1))]


def finish(spans: Sequence[Span]) -> None:
    for span in reversed(spans):
        span.end()


def test_a_program_that_seeds_its_random_numbers_gets_a_verdict_for_each_run() -> None:
    child = children.run("seeded")
    assert (child.code, child.errors) == (0, "")
    assert child.told == {f"run {number}": "pass" for number in range(3)}
    assert len(child.spans) == 9
    assert len({span["trace"] for span in child.spans}) == 1


def test_runs_with_the_same_ids_one_after_the_other_are_two_runs() -> None:
    ids = Scripted()
    gated = gated_by(ids)
    for name in ("first", "second"):
        finish(begin(gated, ids, name, [1, 2, 3]))
        assert gated.flush()
    assert gated.told == {"first": "pass", "second": "pass"}
    assert Counter(gated.names) == Counter(
        ["first", "first/0", "first/1", "second", "second/0", "second/1"],
    )
    assert len({verdict.run_id for verdict in gated.verdicts}) == 2


def test_a_run_with_the_ids_of_a_refused_one_is_not_withheld() -> None:
    ids = Scripted()
    gated = gated_by(ids)
    agent, tool = begin(gated, ids, "refused", [1, 2])
    agent.end()
    gated.until(lambda: gated.told)
    finish(begin(gated, ids, "fine", [1, 2]))
    assert gated.flush()
    tool.end()
    assert gated.told == {"refused": "fail completeness.open_span", "fine": "pass"}
    assert sorted(gated.names) == ["fine", "fine/0", "refused refused"]


def test_runs_with_the_same_ids_at_once_lose_no_span() -> None:
    ids = Scripted()
    gated = gated_by(ids)
    one, two = begin(gated, ids, "one", [1, 2]), begin(gated, ids, "two", [1, 2])
    finish(one)
    finish(two)
    assert gated.flush()
    (verdict,) = gated.verdicts  # nobody can tell the two apart
    assert "forest.duplicate_span_id" in {finding.code for finding in verdict.failures}
    assert gated.gate._telemetry.withheld == 4
    assert gated.gate.losses == {}


def test_threads_that_share_one_seeded_generator_lose_no_span() -> None:
    class Seeded(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return random.Random(3).randint(1, 1 << 63)  # noqa: S311  the same again and again, on purpose

    gated = gated_by(Seeded())
    for number in range(5):
        with gated.open("agent", f"{number}"):
            pass
        assert gated.flush()
    assert set(gated.told.values()) == {"pass"}
    assert len(gated.names) == 5


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_that_steps_is_told_and_keeps_nobody_waiting(step_s: int) -> None:
    gated = Gated(gates=default_gates())
    agent = gated.start("agent", start_time=2_000_000_000_000_000_000)
    tool = gated.start("tool", under=agent, start_time=2_000_000_000_000_000_001)
    tool.end(2_000_000_000_000_000_002 + step_s * 1_000_000_000)
    agent.end(2_000_000_000_000_000_003 + step_s * 1_000_000_000)
    assert gated.flush()
    if step_s > 0:
        assert [verdict.verdict for verdict in gated.verdicts] == ["pass"]
        return
    (verdict,) = gated.verdicts
    assert "timing.inverted_span" in {finding.code for finding in verdict.failures}
    refusal = gated.one("refused agent")
    assert refusal.start_time is not None
    assert refusal.end_time is not None
    assert refusal.start_time <= refusal.end_time
