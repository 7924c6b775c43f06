"""When a run is judged: its end, the two waits after it, flushes, the shutdown, the bounds, and what comes later."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanKind

from spangate import Verdict, _processor
from spangate._release.tries import TRIES
from tests.live.gated import LONG, Gated, Hanging, Probe, Stepped, What

# Membership stays open for a moment


def test_a_span_that_starts_when_nothing_is_open_any_more_joins_the_run() -> None:
    gated = Gated(settle_s=LONG)
    with gated.open("agent") as agent:
        pass
    gated.ended("tool", under=agent)
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.late_child"}
    assert gated.verdicts[0].totals.spans_started == 2
    assert gated.names == ["refused agent"]


def test_membership_closes_by_itself() -> None:
    gated = Gated(settle_s=0.02, grace_s=LONG)
    gated.ended("agent")
    gated.until_left("agent")
    assert gated.verdicts[0].trigger == "root_end"


def test_a_flush_cuts_the_wait_for_members_short() -> None:
    gated = Gated(settle_s=LONG)
    gated.ended("agent")
    assert gated.flush()
    assert gated.names == ["agent"]
    assert gated.verdicts[0].trigger == "force_flush"


def test_a_shutdown_cuts_the_wait_for_members_short() -> None:
    gated = Gated(settle_s=LONG)
    gated.ended("agent")
    gated.shutdown()
    assert gated.told == {"agent": "pass"}
    assert gated.verdicts[0].trigger == "shutdown"


def test_a_run_is_never_judged_by_the_thread_that_ends_it() -> None:
    judges: set[str] = set()
    gated = Gated(settle_s=0.0, on_verdict=lambda _verdict: judges.add(threading.current_thread().name))
    gated.ended("agent")
    gated.until(lambda: judges)
    assert judges == {"spangate-judge"}


# Spans that outlive their root


def test_what_ends_within_the_grace_is_a_warning() -> None:
    gated = Gated(grace_s=LONG)
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    assert not gated.flush(0.05)
    tool.end()
    gated.until_left("tool", "agent")
    assert gated.told == {"agent": "pass (completeness.outlived_root)"}


def test_what_does_not_is_open() -> None:
    gated = Gated(grace_s=0.02, settle_s=LONG)
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    gated.until(lambda: gated.told)
    assert gated.told == {"agent": "fail completeness.open_span"}
    tool.end()


def test_what_starts_within_the_grace_joins_the_run() -> None:
    gated = Gated(grace_s=LONG)
    with gated.open("agent") as agent:
        task = gated.start("other", "task", under=agent)
    gated.ended("tool", under=task)
    task.end()
    gated.until_left("tool", "task", "agent")
    assert gated.told == {"agent": "pass (completeness.outlived_root)"}


# force_flush


def test_a_flush_with_nothing_held_is_done() -> None:
    assert Gated().flush()


def test_a_flush_waits_for_a_grace_that_ends_in_time() -> None:
    gated = Gated(grace_s=0.1)
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    assert gated.flush()
    assert gated.told == {"agent": "fail completeness.open_span"}
    tool.end()


@pytest.mark.parametrize("above", ["other", "entry"])
def test_a_flush_leaves_a_run_with_a_longer_grace_alone_and_says_so(above: What) -> None:
    gated = Gated(grace_s=LONG)
    with gated.open(above, "above") as root, gated.open("agent", under=root) as agent:
        tool = gated.start("tool", under=agent)
    assert not gated.flush(0.05)
    assert gated.told == {}
    tool.end()
    assert gated.flush()
    assert list(gated.told.values()) == ["pass (completeness.outlived_root)"]


@pytest.mark.parametrize("above", ["other", "entry"])
def test_a_flush_never_fails_a_live_run(above: What) -> None:
    gated = Gated()
    with gated.open(above, "above") as root, gated.open("agent", under=root) as agent:
        gated.ended("tool", under=agent)
        assert gated.flush()
        assert gated.told == {}
        assert gated.names == []
    assert gated.flush()
    assert list(gated.told.values()) == ["pass"]


def test_a_flush_settles_what_is_over_beside_what_is_live() -> None:
    gated = Gated(settle_s=LONG, grace_s=LONG)
    with gated.open("agent", "live"):
        gated.ended("agent", "over")
        assert gated.flush()
        assert gated.told == {"over": "pass"}


def test_a_flush_says_whether_the_exporter_took_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.0)
    answers = [SpanExportResult.FAILURE] * (2 * TRIES)  # the run, then its verdict
    gated = Gated(exporter=Probe(lambda _call, _spans: answers.pop() if answers else None))
    gated.ended("agent")
    assert not gated.flush()
    gated.ended("agent")
    assert gated.flush()


def test_a_flush_gives_up_on_an_exporter_that_hangs() -> None:
    exporter = Hanging()
    gated = Gated(exporter=exporter)
    gated.ended("agent")
    assert not gated.flush(0.05)
    exporter.let_go.set()
    assert gated.flush()


def test_a_flush_of_one_caller_does_not_keep_another_waiting() -> None:
    gated = Gated(grace_s=5.0)
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    patient = threading.Thread(target=gated.flush, args=(60.0,))
    patient.start()
    gated.until(lambda: not gated.gate._worker._flushes.qsize())
    start = time.monotonic()
    gated.shutdown()
    patient.join(60.0)
    assert time.monotonic() - start < 4.0
    assert gated.told == {"agent": "fail completeness.open_span"}
    tool.end()


def test_flushes_from_many_threads_are_all_answered() -> None:
    gated = Gated()
    answers: list[bool] = []
    gated.ended("agent")
    threads = [threading.Thread(target=lambda: answers.append(gated.flush())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert answers == [True] * 16


# shutdown


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ("other", {"above": "fail completeness.open_span completeness.root_open"}),
        ("entry", {"agent": "fail completeness.root_open"}),
    ],
)
def test_a_shutdown_settles_what_is_live_as_it_stands(above: What, told: dict[str, str]) -> None:
    gated = Gated(grace_s=LONG, settle_s=LONG)
    root = gated.start(above, "above")
    agent = gated.start("agent", under=root)
    gated.ended("tool", under=agent)
    gated.shutdown()
    assert gated.told == told
    assert {verdict.trigger for verdict in gated.verdicts} == {"shutdown"}
    assert "tool" not in gated.names


def test_a_shutdown_cuts_the_grace_short() -> None:
    gated = Gated(grace_s=LONG)
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    gated.shutdown()
    assert gated.told == {"agent": "fail completeness.open_span"}
    tool.end()


def test_a_server_call_that_is_still_open_at_the_shutdown_is_told() -> None:
    gated = Gated()
    call = gated.start("tool", "tools/call", kind=SpanKind.SERVER)
    gated.shutdown()
    assert gated.told == {"tools/call": "fail completeness.root_open"}
    call.end()


@pytest.mark.parametrize("what", ["other", "entry"])
def test_a_shutdown_lets_pass_what_has_ended_where_no_agent_is(what: What) -> None:
    gated = Gated(settle_s=LONG)
    with gated.open(what, "root") as root, gated.open("other", "step", under=root) as step:
        gated.ended("other", "query", under=step)
        gated.shutdown()
        assert gated.names == ["query"]


def test_what_ends_after_the_shutdown_is_counted() -> None:
    gated = Gated()
    root = gated.start("other", "root")
    below = gated.start("other", "below", under=root)
    agent = gated.start("agent")
    gated.shutdown()
    for span in (below, root, agent, gated.start("agent", "after")):
        span.end()
    assert gated.gate.losses == {"after_shutdown": 3}
    assert gated.gate._telemetry.withheld == 1
    assert gated.names == ["refused agent"]


def test_a_second_shutdown_does_nothing() -> None:
    gated = Gated()
    agent = gated.start("agent")
    gated.gate.shutdown()
    gated.gate.shutdown()
    assert len(gated.verdicts) == 1
    assert gated.flush()
    agent.end()


def test_a_shutdown_is_bounded_though_the_exporter_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_processor, "SHUTDOWN_S", 0.05)
    exporter = Hanging()
    gated = Gated(exporter=exporter)
    gated.ended("agent")
    start = time.monotonic()
    gated.shutdown()
    assert time.monotonic() - start < 5.0
    exporter.let_go.set()
    assert "not everything" in caplog.text


def test_a_shutdown_tries_a_dead_exporter_once_only() -> None:
    probe = Probe(lambda _call, _spans: SpanExportResult.FAILURE)
    gated = Gated(exporter=probe, settle_s=LONG)
    gated.ended("agent")
    gated.shutdown()
    assert [len(spans) for spans in probe.calls] == [1, 1]
    assert gated.gate.losses == {"refused": 2}


def test_where_threads_can_no_longer_start_the_caller_judges_and_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    gated = Gated()
    monkeypatch.setattr(threading.Thread, "start", no_more)
    gated.ended("agent", "one")
    assert gated.flush()
    gated.ended("agent", "two")
    gated.shutdown()
    assert gated.names == ["one", "two"]


# Bounds


def test_a_run_in_which_nothing_happens_is_judged_as_it_stands() -> None:
    gated = Gated(idle_timeout_s=0.05)
    agent = gated.start("agent")
    gated.ended("tool", under=agent)
    gated.until(lambda: gated.told)
    assert gated.told == {"agent": "fail completeness.root_open"}
    assert gated.verdicts[0].trigger == "idle"
    agent.end()


def test_by_default_a_run_may_be_idle_for_as_long_as_it_likes() -> None:
    gated = Stepped()
    with gated.open("agent"):
        for hour in range(24):
            gated.look(hour * 3600.0)
        assert gated.told == {}


def test_a_run_is_idle_from_its_last_start_or_end() -> None:
    gated = Stepped(idle_timeout_s=10.0)
    agent = gated.start("agent")
    for second in (0.0, 9.0, 18.0, 27.0):
        gated.ended("tool", under=agent)
        gated.look(second)
    gated.look(36.0)
    assert gated.told == {}
    gated.look(37.0)
    assert gated.told == {"agent": "fail completeness.root_open"}
    agent.end()


@pytest.mark.parametrize("above", ["other", "entry"])
def test_a_run_that_is_too_old_is_judged_as_it_stands(above: What) -> None:
    gated = Stepped(max_run_age_s=10.0)
    root = gated.start(above, "above")
    agent = gated.start("agent", under=root)
    gated.ended("tool", under=agent)
    for second in (0.0, 9.0):
        gated.look(second)
        assert gated.told == {}
    gated.look(10.0)
    (told,) = gated.told.values()
    assert "completeness.root_open" in told
    assert gated.verdicts[0].trigger == "age"
    agent.end()
    root.end()


def test_a_young_agent_of_an_old_socket_is_left_alone() -> None:
    gated = Stepped(max_run_age_s=10.0)
    socket = gated.start("entry")
    gated.look(9.0)
    with gated.open("agent", "one", under=socket):
        for second in (9.5, 10.0, 11.0, 18.0):
            gated.look(second)
    for second in (18.5, 19.0):
        gated.look(second)
    assert gated.told == {"one": "pass"}
    socket.end()


def test_an_old_socket_is_let_go_once_and_not_again_at_every_look() -> None:
    gated = Stepped(max_run_age_s=10.0)
    socket = gated.start("entry")
    gated.look(10.0)
    with gated.open("other", "unknown", under=socket) as unknown:
        gated.ended("other", "step", under=unknown)
        gated.look(11.0)
        unknown.set_attribute("gen_ai.operation.name", "invoke_agent")
    for second in (12.0, 13.0):
        gated.look(second)
    assert gated.told == {"unknown": "pass"}
    assert gated.verdicts[0].totals.spans_started == 2
    socket.end()


def big(gated: Gated, what: What, name: str, mebibytes: int) -> Span:
    """Start a tree that holds so much."""
    root = gated.start(what, name)
    content = {"content": "x" * (mebibytes << 20)}
    gated.ended("tool" if what == "agent" else "other", f"in {name}", under=root, attributes=content)
    return root


def test_of_idle_trees_the_heaviest_goes_first_when_too_much_is_held() -> None:
    gated = Stepped(max_held_bytes=6 << 20)
    for name, size in (("light", 1), ("heavy", 3), ("middle", 2)):
        big(gated, "agent", name, size)
    gated.look(1.0)
    assert gated.told == {"heavy": "fail buffer.overflow completeness.root_open"}
    assert gated.verdicts[0].trigger == "memory"
    gated.look(2.0)
    assert len(gated.told) == 1


def test_idle_trees_go_before_busy_ones_when_too_much_is_held() -> None:
    gated = Stepped(max_held_bytes=7 << 20)
    busy = big(gated, "agent", "busy", 4)
    big(gated, "agent", "idle", 2)
    gated.look(0.0)
    gated.ended("tool", under=busy, attributes={"content": "x" * (2 << 20)})
    gated.look(1.0)
    assert list(gated.told) == ["idle"]


def test_a_tree_without_an_agent_passes_when_too_much_is_held() -> None:
    gated = Stepped(max_held_bytes=2 << 20)
    job = big(gated, "other", "job", 3)
    gated.look(1.0)
    assert gated.names == ["in job"]
    assert gated.told == {}
    job.end()


def test_no_more_than_the_bound_is_ever_held_for_long() -> None:
    gated = Gated(max_held_bytes=4 << 20)
    for number in range(12):
        big(gated, "agent", f"agent {number}", 1)
    gated.until(lambda: len(gated.told) >= 8)
    gated.until(lambda: sum(tree.weight for tree in gated.gate._buffer.held()) <= 4 << 20)
    assert set(gated.told.values()) == {"fail buffer.overflow completeness.root_open"}


# What comes after the decision


def test_a_span_that_ends_after_a_refusal_is_withheld_and_counted() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    gated.until(lambda: gated.told)
    tool.end()
    gated.until(lambda: gated.gate._telemetry.withheld == 2)
    assert gated.flush()
    assert gated.names == ["refused agent"]
    assert gated.gate.losses == {}


def test_a_span_that_ends_after_a_release_follows_it() -> None:
    gated = Gated(gates=())
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    gated.until_left("agent")
    tool.end()
    gated.until_left("agent", "tool")
    assert gated.attributes("tool")["spangate.run_id"] == gated.attributes("agent")["spangate.run_id"]
    assert gated.attributes("tool")["spangate.invocation_id"]


def test_a_root_that_ends_after_its_release_left_a_verdict_span_meanwhile() -> None:
    gated = Gated(gates=(), max_run_age_s=0.05)
    agent = gated.start("agent")
    gated.until_left("passed agent")
    assert gated.attributes("passed agent")["spangate.verdict"] == "pass"
    agent.end()
    gated.until_left("passed agent", "agent")
    assert gated.attributes("agent")["spangate.run_id"] == gated.attributes("passed agent")["spangate.run_id"]


def test_what_starts_after_a_refusal_is_withheld_and_counted() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        leaked = gated.start("tool", under=agent)
    gated.until(lambda: gated.told)
    gated.ended("other", "plain", under=agent)
    gated.ended("generation", "below what is open", under=leaked)
    gated.until(lambda: gated.gate._telemetry.withheld == 3)
    leaked.end()
    gated.until(lambda: gated.gate._telemetry.withheld == 4)
    assert gated.names == ["refused agent"]


def test_what_starts_after_the_root_of_a_released_run_turns_the_verdict() -> None:
    gated = Gated()
    agent = gated.ended("agent")
    assert gated.flush()
    gated.ended("generation", "late", under=agent)
    assert gated.flush()
    assert gated.names == ["agent", "refused late"]
    root = gated.one("agent").context
    assert root is not None
    assert gated.attributes("refused late")["spangate.supersedes"] == format(root.span_id, "016x")
    assert gated.attributes("refused late")["spangate.spans_withheld"] == 1


class Echo(SpanProcessor):
    """Keeps what ended, to be told again."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


def test_a_span_that_ends_twice_since_the_gate_is_there_twice_does_not_come_again() -> None:
    gated = Stepped()
    gated.add_span_processor(echo := Echo())
    with gated.open("entry") as entry:
        gated.ended("other", "query", under=entry)
        gated.look(1.0)
        gated.gate.on_end(echo.ended[0])
        gated.look(2.0)
        assert gated.names == ["query"]


def test_a_gate_that_is_there_twice_is_told_of() -> None:
    gated = Gated(settle_s=0.0)
    gated.add_span_processor(gated.gate)  # by mistake
    with gated.open("entry", "POST /") as entry:
        for number in range(50):
            gated.ended("other", f"query {number}", under=entry)
        gated.ended("agent", under=entry)
    gated.until(lambda: len(gated.names) >= 52)
    assert gated.flush()
    assert len(gated.names) == 52
    assert gated.told == {"agent": "pass (export.duplicate_span)"}


def test_the_memory_of_decisions_is_bounded_and_plain_requests_do_not_use_it_up() -> None:
    gated = Gated(settle_s=0.0)
    memory = gated.gate._buffer._memory
    memory._max = 8
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
    gated.until(lambda: gated.told)
    for number in range(20):
        gated.ended("entry", f"GET /{number}")
    assert gated.flush()
    tool.end()
    assert gated.flush()
    assert "tool" not in gated.names
    assert len(memory._runs) <= 8
    assert len(memory._plain) <= 8
    assert len(memory._newest) <= 16
    assert memory.open_ids() == frozenset()


# The callback


def test_a_callback_that_raises_costs_nobody_a_verdict(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Verdict] = []

    def raises(verdict: Verdict) -> None:
        told.append(verdict)
        raise ValueError("mine")

    gated = Gated(on_verdict=raises)
    with caplog.at_level(logging.ERROR):
        gated.ended("agent", "one")
        gated.ended("agent", "two")
        assert gated.flush()
    assert [verdict.run_name for verdict in told] == ["one", "two"]
    assert gated.names == ["one", "two"]
    assert "on_verdict raised" in caplog.text
