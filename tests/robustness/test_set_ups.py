"""Gates put on providers in ways that nobody meant, gates and callbacks that break, and hooks after the end."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import Finding, GateSpanProcessor, Run, Span, Verdict
from spangate._judge import Panel
from spangate._release import leaving
from spangate._settle import decide
from tests.live.gated import LONG, SOON, Gated, Probe, context_of, started


def healthy(gated: Gated, name: str = "agent", tools: int = 1) -> None:
    with gated.open("agent", name) as agent:
        for number in range(tools):
            gated.ended("tool", f"{name}/{number}", under=agent)


# Set-ups


def test_a_processor_that_was_added_twice_sends_each_span_once_and_says_so() -> None:
    gated = Gated()
    gated.add_span_processor(gated.gate)
    healthy(gated)
    with gated.open("entry", "request") as request:
        gated.ended("other", "query", under=request)
    assert gated.flush()
    assert Counter(gated.names) == Counter(["agent", "agent/0", "request", "query"])
    assert gated.told == {"agent": "pass (export.duplicate_span)"}
    assert gated.gate.losses == {}


class Told(ReadableSpan):
    """What a processor in between made of a span: it has none of the SDK's fields, and tells what the other tells."""

    def __init__(self, span: ReadableSpan) -> None:  # not the SDK's own, which would set the fields
        self._span = span

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__" or name.startswith("_"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_span"), name)


class Between(SpanProcessor):
    """Hands on to another processor what it made of ended spans."""

    def __init__(self, inner: SpanProcessor) -> None:
        self._inner = inner

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        self._inner.on_end(Told(span))


def test_spans_that_a_processor_in_between_hands_on_are_read_by_their_properties() -> None:
    gated = Gated()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Between(gated.gate))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for _ in range(3):
            tracer.start_span("tool", attributes={"gen_ai.operation.name": "execute_tool"}).end()
    assert gated.flush()
    assert Counter(gated.names) == {"agent": 1, "tool": 3}
    assert gated.told == {"agent": "pass"}
    assert gated.gate.losses == {}


@pytest.mark.parametrize("kind", [None, 0, "internal"])
def test_a_root_of_no_kind_is_one_like_others(kind: Any) -> None:
    gated = Gated(unit="agent")
    with gated.open("other", "root", kind=kind) as root:
        for number in range(2):
            gated.ended("agent", f"agent {number}", under=root)
    assert gated.flush()
    assert gated.told == {"agent 0": "pass", "agent 1": "pass"}


def test_a_root_that_starts_while_the_gate_shuts_down_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = Gated()
    place = gated.gate._placer.place

    def late(*args: Any) -> Any:
        gated.gate.shutdown()
        return place(*args)

    monkeypatch.setattr(gated.gate._placer, "place", late)
    healthy(gated, tools=3)
    assert gated.gate.losses == {"after_shutdown": 4}
    assert gated.gate._buffer.count_spans() == 0


def test_two_gates_judge_for_themselves() -> None:
    gated = Gated()
    memory = InMemorySpanExporter()
    strict = GateSpanProcessor(memory, gates=[refuse], grace_s=0.02, settle_s=0.02)
    gated.add_span_processor(strict)
    healthy(gated)
    assert gated.force_flush()
    assert gated.names == ["agent/0", "agent"]
    assert [span.name for span in memory.get_finished_spans()] == ["refused agent"]
    strict.shutdown()


def refuse(_run: Run) -> Iterator[Finding]:
    yield Finding("mine.refused", None, "as always", "fail")


def test_a_gate_that_comes_late_loses_nothing() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    root = started(provider, "agent", "root", None)
    before = started(provider, "tool", "before", root)
    memory = InMemorySpanExporter()
    gate = GateSpanProcessor(memory, grace_s=0.02, settle_s=0.02)
    provider.add_span_processor(gate)
    after = started(provider, "tool", "after", root)
    for span in (before, after, root):
        span.end()
    assert gate.force_flush()
    assert Counter(span.name for span in memory.get_finished_spans()) == Counter(["before", "after", "root"])
    assert gate.losses == {}
    gate.shutdown()


def test_nothing_is_seen_of_spans_that_no_sdk_makes() -> None:
    memory = InMemorySpanExporter()
    gate = GateSpanProcessor(memory)
    with trace.NoOpTracerProvider().get_tracer("none").start_as_current_span("agent"):
        pass
    assert gate.force_flush()
    assert memory.get_finished_spans() == ()
    assert gate._worker.has_started is False
    gate.shutdown()


def test_hooks_in_other_threads_lose_nothing() -> None:
    gated = Gated(provider={"active_span_processor": ConcurrentMultiSpanProcessor(2)})
    gated.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    for number in range(50):
        healthy(gated, f"run {number}", tools=3)
    assert gated.flush()
    assert set(gated.told.values()) == {"pass"}
    assert len(gated.told) == 50
    assert Counter(gated.names) == Counter([f"run {run}{tool}" for run in range(50) for tool in ("", "/0", "/1", "/2")])


def test_another_processor_that_raises_costs_the_gate_nothing() -> None:
    class Broken(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:  # noqa: ARG002  the interface's name
            raise RuntimeError("another's")

    gated = Gated()
    gated.add_span_processor(Broken())
    with pytest.raises(RuntimeError, match="another's"):
        gated.ended("agent")
    assert gated.flush()
    assert gated.told == {"agent": "pass"}


def test_without_any_exporter_it_says_what_may_be_given() -> None:
    with pytest.raises(ValueError, match="an exporter, several of them, or None"):
        GateSpanProcessor(())


@pytest.mark.parametrize("mistaken", ["http://localhost:4318", [InMemorySpanExporter(), None], InMemorySpanExporter, 5])
def test_what_is_no_exporter_is_refused_at_once(mistaken: Any) -> None:
    with pytest.raises(TypeError, match=r"give exporters, as OTLPSpanExporter\(\), or None"):
        GateSpanProcessor(mistaken)


# After the end


def test_a_gate_is_shut_down_once() -> None:
    gated = Gated()
    healthy(gated)
    gated.shutdown()
    gated.shutdown()
    gated.gate.shutdown()
    assert gated.names == ["agent/0", "agent"]
    assert not {thread.name for thread in threading.enumerate()} & {"spangate-judge", "spangate-export"}


def test_spans_after_the_shutdown_are_counted_and_hurt_nobody() -> None:
    gated = Gated()
    held = gated.start("agent", "held")
    gated.gate.shutdown()
    healthy(gated, "late", tools=2)
    held.end()
    assert gated.flush()
    assert gated.told == {"held": "fail completeness.root_open"}
    assert gated.gate.losses == {"after_shutdown": 3}
    assert gated.gate._buffer.count_spans() == 0


def test_a_gate_that_nobody_used_shuts_its_exporter_down() -> None:
    gated = Gated()
    assert gated.flush()
    gated.shutdown()
    assert gated.memory._stopped  # type: ignore[attr-defined]


def test_the_same_span_may_be_ended_twice() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        tool = gated.start("tool", under=agent)
        tool.end()
        tool.end()
    agent.end()
    assert gated.flush()
    assert gated.names == ["tool", "agent"]
    assert gated.told == {"agent": "pass"}


# Gates and callbacks


@pytest.mark.parametrize("error", [KeyError, RecursionError])
def test_a_gate_that_raises_refuses_and_tells_no_secret(error: type[BaseException]) -> None:
    def broken_gate(run: Run) -> Iterator[Finding]:
        if run.name == "bad":
            raise error("secret")
        yield from ()

    gated = Gated(gates=[broken_gate])
    healthy(gated, "bad")
    healthy(gated, "good")
    assert gated.flush()
    assert gated.told == {"bad": "fail gate.error", "good": "pass"}
    assert sorted(gated.names) == ["good", "good/0", "refused bad"]
    assert "secret" not in gated.one("refused bad").to_json()


def test_a_gate_that_leaves_its_thread_costs_its_run_only() -> None:
    def leaving_gate(run: Run) -> Iterator[Finding]:
        if run.name == "bad":
            sys.exit("a gate must not")
        yield from ()

    gated = Gated(gates=[leaving_gate])
    healthy(gated, "bad")
    healthy(gated, "good")
    assert gated.flush()
    assert gated.told == {"good": "pass"}
    assert gated.names == ["good/0", "good"]
    assert gated.gate.losses == {"defect": 2}


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_callback_that_raises_costs_no_run_its_verdict(error: type[BaseException]) -> None:
    told: list[str] = []

    def callback(verdict: Verdict) -> None:
        told.append(verdict.run_name)
        raise error("the callback's own")

    gated = Gated(on_verdict=callback)
    for name in ("one", "two", "three"):
        healthy(gated, name)
    assert gated.flush()
    assert sorted(told) == ["one", "three", "two"]
    assert len(gated.names) == 6


@pytest.mark.parametrize("act", ["force_flush", "shutdown"])
def test_a_callback_that_flushes_or_shuts_down_does_not_wait_for_itself(act: str) -> None:
    told: list[Any] = []
    gates: list[GateSpanProcessor] = []
    gated = Gated(on_verdict=lambda _verdict: told.append(getattr(gates[0], act)()))
    gates.append(gated.gate)
    healthy(gated)
    gated.until(lambda: told)
    assert told[0] is (False if act == "force_flush" else None)
    gated.until(lambda: len(gated.names) == 2)
    if act == "shutdown":
        gated.until(lambda: gated.memory._stopped)  # type: ignore[attr-defined]


def test_a_callback_may_make_spans_of_its_own() -> None:
    providers: list[Gated] = []
    gated = Gated(on_verdict=lambda verdict: providers[0].ended("other", f"about {verdict.run_name}").end())
    providers.append(gated)
    healthy(gated)
    gated.until(lambda: "about agent" in gated.names)


def test_a_callback_that_hangs_neither_blocks_the_program_nor_fills_its_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spangate._processor.SHUTDOWN_S", 0.1)
    let_go, hangs = threading.Event(), threading.Event()

    def callback(_verdict: Verdict) -> None:
        hangs.set()
        let_go.wait(60.0)

    gated = Gated(on_verdict=callback, max_held_bytes=1 << 20)
    room = gated.gate._buffer._max_spans
    healthy(gated, "first")
    assert hangs.wait(SOON)
    start = time.monotonic()
    with gated.open("agent", "long") as agent:
        for number in range(2 * room):
            gated.ended("tool", f"{number}", under=agent)
    assert time.monotonic() - start < 6 * SOON
    assert gated.gate._buffer.count_spans() == room
    assert gated.gate.losses["overload"] == room + 1
    assert not gated.flush(0.05)
    assert "a gate or a callback hangs" in caplog.text
    let_go.set()
    gated.until(lambda: gated.gate._buffer.count_spans() == 0)
    assert "long" not in gated.names
    healthy(gated, "again")
    gated.until(lambda: "again" in gated.names)


def test_a_program_may_shut_down_though_a_callback_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._processor.SHUTDOWN_S", 0.1)
    let_go, hangs = threading.Event(), threading.Event()

    def callback(_verdict: Verdict) -> None:
        hangs.set()
        let_go.wait(60.0)

    gated = Gated(on_verdict=callback)
    healthy(gated)
    assert hangs.wait(SOON)
    healthy(gated, "held", tools=2)
    start = time.monotonic()
    gated.gate.shutdown()
    assert time.monotonic() - start < SOON
    assert gated.gate.losses == {"shutdown": 3}
    let_go.set()


# The gate's own defects


def test_a_defect_in_a_hook_reaches_nobody_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated()
    monkeypatch.setattr(gated.gate, "_quick", None)
    healthy(gated, tools=3)
    assert gated.gate.losses == {"hook_error": 7}
    assert caplog.text.count("Traceback") == 2


def test_a_defect_in_flushes_and_shutdowns_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = Gated()
    healthy(gated)
    monkeypatch.setattr(gated.gate._worker, "flush", _fail)
    assert gated.gate.force_flush() is False
    gated.gate.shutdown()
    assert gated.gate.losses == {}


def test_what_cannot_be_settled_is_given_up_in_the_end_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated()
    settler = gated.gate._worker._settler
    with monkeypatch.context() as patch:
        patch.setattr(settler, "_look_at_whole", _fail)
        healthy(gated, "bad", tools=2)
        assert not gated.flush()
        gated.until(lambda: gated.gate.losses)
    assert gated.gate.losses == {"defect": 3}
    assert gated.gate._buffer.count_spans() == 0
    assert "a defect of spangate" in caplog.text
    healthy(gated, "good")
    gated.until(lambda: "good" in gated.names)


def test_a_defect_in_handing_on_costs_what_was_handed_on_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated()
    with monkeypatch.context() as patch:
        patch.setattr(gated.gate._telemetry, "release", _fail)
        healthy(gated, "first")
        assert not gated.flush()
    assert "could not hand on" in caplog.text
    healthy(gated, "second")
    assert gated.flush()
    assert gated.names[-2:] == ["second/0", "second"]


def test_spans_that_cannot_be_made_ready_cost_those_beside_them_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated(settle_s=LONG)  # so that both leave together
    healthy(gated, "bad")
    healthy(gated, "good")
    make = leaving.ReleasedSpan.__init__

    def fails_on_bad(self: Any, known: Span, *more: Any) -> None:
        if known.name == "bad/0":
            _fail()
        make(self, known, *more)

    with monkeypatch.context() as patch:
        patch.setattr(leaving.ReleasedSpan, "__init__", fails_on_bad)
        assert not gated.flush()
    assert sorted(gated.names) == ["good", "good/0", "refused bad"]
    assert gated.gate.losses == {"defect": 2}
    assert "could not be made ready" in caplog.text


@pytest.mark.parametrize(("owner", "place"), [(Panel, "judge"), (decide, "run_parcel"), (decide, "verdict_parcel")])
def test_a_run_that_cannot_be_judged_is_withheld_and_counted(
    owner: Any, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated(gates=[refuse] if place == "verdict_parcel" else ())
    with monkeypatch.context() as patch:
        patch.setattr(owner, place, _fail)
        with gated.open("agent", "bad") as bad:
            gated.ended("tool", under=bad)
            late = gated.start("tool", "late", under=bad)
        gated.until(lambda: gated.gate.losses)
    assert gated.gate.losses == {"defect": 2}
    late.end()
    assert gated.flush()
    assert gated.names == []
    assert "could not be judged" in caplog.text


def test_spans_that_cannot_be_passed_on_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = Gated()
    with monkeypatch.context() as patch:
        patch.setattr(decide, "passing_parcel", _fail)
        gated.ended("other", "bad")
        gated.until(lambda: gated.gate.losses)
    gated.ended("other", "good")
    assert gated.flush()
    assert gated.names == ["good"]
    assert gated.gate.losses == {"defect": 1}


def _fail(*_arguments: Any, **_more: Any) -> Any:
    raise ZeroDivisionError("a defect")


# Threads


def test_threads_start_with_the_first_span_and_once_however_many_come_at_once() -> None:
    gated = Gated()
    barrier = threading.Barrier(8)

    def first(number: int) -> None:
        barrier.wait()
        healthy(gated, f"run {number}")

    before = threading.active_count()
    in_threads([lambda number=number: first(number) for number in range(8)])  # type: ignore[misc]
    assert threading.active_count() == before + 2
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("spangate"))
    assert gated.flush()
    assert len(gated.told) == 8


def in_threads(tasks: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()


def test_threads_that_could_not_start_are_tried_again_with_the_next_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = Gated(settle_s=LONG)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _no_more_threads)
        healthy(gated, "first")
        assert gated.flush()
        assert gated.told == {"first": "pass"}
        healthy(gated, "second")
    assert not gated.gate._worker._judge_thread.is_alive()
    healthy(gated, "third")
    assert gated.gate._worker._judge_thread.is_alive()
    assert gated.flush()
    assert set(gated.told) == {"first", "second", "third"}


def _no_more_threads(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_who_starts_the_threads_second_does_not_wait_for_the_first() -> None:
    gated = Gated(settle_s=LONG)
    with gated.gate._worker._starting:  # another thread is at it
        healthy(gated)
    assert not gated.gate._worker.has_started
    healthy(gated, "second")
    assert gated.flush()
    assert set(gated.told) == {"agent", "second"}


def test_without_a_thread_to_export_a_flush_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, let_go = threading.Event(), threading.Event()

    def callback(_verdict: Verdict) -> None:
        hangs.set()
        let_go.wait(60.0)

    gated = Gated(on_verdict=callback)
    start = threading.Thread.start

    def only_the_judge(thread: threading.Thread) -> None:
        if thread.name == "spangate-export":
            _no_more_threads(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", only_the_judge)
    healthy(gated)
    assert hangs.wait(SOON)
    assert not gated.flush(0.05)
    let_go.set()
    assert gated.flush()
    assert gated.names == ["agent/0", "agent"]


@pytest.mark.parametrize("where", ["judging", "telling", "exporting", "settling"])
def test_an_interrupt_from_the_keyboard_reaches_the_program_that_flushes(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", _no_more_threads)
    gated = Gated(
        gates=[interrupt] if where == "judging" else (),
        on_verdict=interrupt if where == "telling" else None,
        exporter=Probe(interrupt) if where == "exporting" else None,
    )
    healthy(gated)
    with monkeypatch.context() as patch:
        if where == "settling":
            patch.setattr(gated.gate._worker._settler, "tick", interrupt)
        with pytest.raises(KeyboardInterrupt):
            gated.flush()


def test_a_flush_from_a_handler_that_interrupted_the_gate_is_served() -> None:
    gated = Gated(settle_s=LONG)
    healthy(gated)
    with gated.gate._buffer._lock:  # where a signal handler may find its thread
        assert gated.flush()
    assert gated.told == {"agent": "pass"}


def test_a_span_that_ends_in_a_finalizer_within_the_gate_is_taken() -> None:
    gated = Gated()
    span = gated.start("agent")
    with gated.gate._buffer._lock, gated.gate._telemetry._lock:  # where the garbage collector may find its thread
        span.end()
        gated.ended("agent", "another")
    assert gated.flush()
    assert gated.told == {"agent": "pass", "another": "pass"}


def test_the_log_of_the_gate_is_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        gated = Gated(gates=[refuse])
        healthy(gated)
        assert gated.flush()
        gated.shutdown()
    assert {record.name for record in caplog.records if record.name.startswith("spangate")} == {"spangate"}
    assert context_of(gated.exported[0]).is_valid
