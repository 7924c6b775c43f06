"""What happens in the moment between a look at a run and its decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import Span

from tests.live.gated import Stepped


def just_before(gated: Stepped, call: str, act: Callable[[], object]) -> None:
    """Have ``act`` done just before the buffer is next asked to ``call``."""
    buffer: Any = gated.gate._buffer
    original = getattr(buffer, call)

    def called(*args: Any, **kwargs: Any) -> Any:
        setattr(buffer, call, original)
        act()
        return original(*args, **kwargs)

    setattr(buffer, call, called)


def request_with(gated: Stepped, *names: str) -> tuple[Span, list[Span]]:
    entry = gated.start("entry", "POST /")
    return entry, [gated.start("agent", name, under=entry) for name in names]


def test_a_span_that_starts_in_a_tree_joins_it() -> None:
    gated = Stepped(settle_s=1.0, grace_s=60.0)
    agent = gated.ended("agent")
    started: list[Span] = []
    just_before(gated, "close", lambda: started.append(gated.start("tool", under=agent)))
    gated.look(2.0)
    assert gated.told == {}
    started[0].end()
    gated.look(4.0)
    assert gated.told == {"agent": "fail forest.late_child"}
    assert gated.verdicts[0].totals.spans_started == 2


def test_a_span_that_starts_in_one_of_many_runs_of_a_request_joins_it() -> None:
    gated = Stepped(settle_s=1.0, grace_s=60.0)
    _, (one, two) = request_with(gated, "one", "two")
    one.end()
    two.end()
    gated.look(0.0)
    started: list[Span] = []
    just_before(gated, "take", lambda: started.append(gated.start("tool", under=one)))
    gated.look(2.0)
    assert gated.told == {"two": "pass"}
    started[0].end()
    for now in (3.0, 5.0):
        gated.look(now)
    assert gated.told == {"one": "fail forest.late_child", "two": "pass"}
    assert gated.names == ["two", "refused one"]


def test_what_starts_beside_a_run_does_not_hold_it_up() -> None:
    gated = Stepped(settle_s=1.0, grace_s=60.0)
    entry, (one, two) = request_with(gated, "one", "two")
    one.end()
    gated.look(0.0)
    just_before(gated, "take", lambda: gated.start("tool", under=two))
    gated.look(2.0)
    assert gated.told == {"one": "pass"}
    assert entry.end_time is None


def test_a_span_that_ends_while_its_run_is_refused_is_withheld_with_it() -> None:
    gated = Stepped(settle_s=1.0, grace_s=2.0)
    _, (one,) = request_with(gated, "one")
    leaked = gated.start("tool", under=one)
    one.end()
    gated.look(0.0)
    just_before(gated, "take", leaked.end)
    gated.look(2.0)
    assert gated.told == {"one": "fail completeness.open_span"}
    assert gated.names == ["refused one"]
    assert gated.gate._telemetry.withheld == 2
    assert gated.gate.losses == {}


def test_a_span_that_ends_while_its_run_is_released_leaves_with_it() -> None:
    gated = Stepped(settle_s=1.0, grace_s=2.0, gates=())
    _, (one,) = request_with(gated, "one")
    leaked = gated.start("tool", under=one)
    one.end()
    gated.look(0.0)
    just_before(gated, "take", leaked.end)
    gated.look(2.0)
    assert sorted(gated.names) == ["one", "tool"]
    assert gated.attributes("tool")["spangate.run_id"] == gated.attributes("one")["spangate.run_id"]


def test_a_span_that_starts_in_a_tree_whose_grace_is_over_is_part_of_it_and_open() -> None:
    gated = Stepped(settle_s=1.0, grace_s=2.0)
    agent = gated.start("agent")
    task = gated.start("other", "task", under=agent)
    agent.end()
    just_before(gated, "close", lambda: gated.start("tool", under=task))
    gated.look(2.0)
    assert gated.told == {"agent": "fail completeness.open_span"}
    assert gated.verdicts[0].totals.spans_started == 3


def test_what_has_left_a_request_does_not_come_back_when_as_much_has_changed_since() -> None:
    gated = Stepped(settle_s=1.0, grace_s=60.0)
    entry, (agent,) = request_with(gated, "agent")
    entry.end()
    gated.look(0.0)
    gated.ended("tool", under=agent)  # a start and an end, as many changes as the request's leaving took away
    gated.look(0.5)
    agent.end()
    for now in (1.0, 3.0):
        gated.look(now)
    assert gated.names == ["POST /", "tool", "agent"]
