"""How log records leave: in chunks, by one thread at a time, every loss counted, in whatever order things end."""

from __future__ import annotations

import datetime as dt
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExportResult

from spangate import GateLogRecordProcessor, _log_processor
from spangate._release import CHUNK_SPANS
from tests.live.gated import SOON, Hanging, context_of
from tests.logs.logged import HangingLogs, Logged, LogProbe
from tests.otlp_sink import grpc_sink, http_sink, plain

FAILURE = LogRecordExportResult.FAILURE


def test_fifty_thousand_records_of_a_run_leave_in_chunks_by_one_thread_and_in_order() -> None:
    probe = LogProbe()
    it = Logged(log_exporter=probe)
    with it.open("agent") as agent:
        logger = it.loggers.get_logger("test")
        for number in range(50_000):
            logger.emit(body=number) if number % 10 else it.log(number, agent)
    with it.open("agent") as agent:
        for number in range(50_000):
            it.log(number, agent)
    assert it.loggers.force_flush(60_000)
    assert probe.bodies[-50_000:] == [*range(50_000)]
    assert max(map(len, probe.calls)) <= CHUNK_SPANS
    assert (probe.overlaps, probe.threads) == (0, {"spangate-logs"})
    assert len(probe.bodies) == 100_000
    assert it.logs.losses == {}


def test_no_thread_that_logs_waits_for_an_exporter_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log_processor, "SHUTDOWN_S", 0.2)
    hanging = HangingLogs()
    it = Logged(log_exporter=hanging, max_held_bytes=1 << 20)
    it.log("first")
    assert hanging.is_there.wait(SOON)
    before = time.perf_counter()
    for _ in range(1000):
        it.log("x" * 1024)
    assert time.perf_counter() - before < SOON
    assert not it.loggers.force_flush(50)
    lost = it.logs.losses["backlog"]
    assert lost > 0
    before = time.perf_counter()
    it.logs.shutdown()
    assert time.perf_counter() - before < SOON
    assert it.logs.losses == {"backlog": lost, "shutdown": 1001 - lost}
    hanging.let_go.set()


def test_an_exporter_of_spans_that_hangs_keeps_no_record_back() -> None:
    hanging = Hanging()
    it = Logged(exporter=hanging)
    with it.logged("agent"):
        pass
    assert it.left == ["agent"]
    hanging.let_go.set()


@pytest.mark.parametrize(("refusals", "left"), [(3, True), (4, False)])
def test_a_refused_call_is_tried_again_and_then_counted(
    monkeypatch: pytest.MonkeyPatch,
    refusals: int,
    left: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.0)
    probe = LogProbe(lambda call: FAILURE if call <= refusals else None)
    it = Logged(log_exporter=probe)
    with it.logged("agent"):
        pass
    assert it.loggers.force_flush() is left
    assert it.logs.losses == ({} if left else {"refused": 1})
    it.log("next")
    assert it.loggers.force_flush()
    assert probe.calls[-1] == ["next"]


def test_an_exporter_that_raises_loses_what_it_raised_over_and_no_more() -> None:
    def chokes(call: int) -> None:
        if "odd" in probe.calls[call - 1]:
            raise ValueError("odd")

    probe = LogProbe(chokes)
    it = Logged(log_exporter=probe)
    with it.open("agent") as agent:
        for body in ("a", "odd", "b"):
            it.log(body, agent)
    assert not it.loggers.force_flush()
    assert it.logs.losses == {"raised ValueError": 1}
    assert probe.calls[1:] == [["a"], ["odd"], ["b"]]


def test_what_an_exporter_logs_while_it_exports_is_not_exported() -> None:
    def logs(_call: int) -> None:
        it.log("exporting")

    it = Logged(log_exporter=LogProbe(logs))
    it.log("x")
    assert it.loggers.force_flush()
    assert it.log_memory.bodies == ["x"]  # type: ignore[attr-defined]
    assert it.logs.losses == {"exporting": 1}


def test_lines_that_come_one_at_a_time_share_calls() -> None:
    probe = LogProbe()
    it = Logged(log_exporter=probe)
    for number in range(100):
        it.log(number)
    it.until(lambda: len(probe.bodies) == 100)
    assert len(probe.calls) <= 2


def shut_down(*owners: Any) -> None:
    for owner in owners:
        owner.shutdown()


@pytest.mark.parametrize("spans_first", [True, False])
@pytest.mark.parametrize("leaks", [False, True])
def test_whichever_provider_is_shut_down_first_nothing_is_lost(spans_first: bool, leaks: bool) -> None:  # noqa: FBT001
    probe = LogProbe()
    it = Logged(log_exporter=probe, grace_s=0.5)
    it.log("elsewhere")
    with it.logged("agent", "done"):
        pass
    root = it.start("agent", "open until the end")
    it.log("of the open one", root)
    if not leaks:
        threading.Timer(0.05, root.end).start()
        it.until(lambda: root.end_time is not None)
    shut_down(*((it, it.loggers) if spans_first else (it.loggers, it)))
    assert sorted(probe.bodies) == sorted(["elsewhere", "done", *([] if leaks else ["of the open one"])])
    assert (it.logs.losses, it.logs.withheld, probe.shutdowns) == ({}, int(leaks), 1)
    it.log("too late", root)
    assert it.logs.losses == {"after_shutdown": 1}
    assert it.loggers.force_flush()


def test_records_of_an_open_run_wait_for_the_gate_though_their_provider_is_shut_down() -> None:
    probe = LogProbe()
    it = Logged(log_exporter=probe)
    with it.logged("agent"):
        it.loggers.shutdown()
        assert (probe.bodies, probe.shutdowns) == ([], 0)
    it.shutdown()
    assert (probe.bodies, probe.shutdowns) == (["agent"], 1)


def test_a_gate_that_is_shut_down_lets_pass_what_comes_later_but_for_refused_runs() -> None:
    it = Logged()
    with it.logged("agent") as agent:
        it.start("generation", under=agent)
    it.shutdown()
    it.log("late", agent)
    it.log("of a span that no gate has seen", it.start("other"))
    assert it.left == ["of a span that no gate has seen"]
    assert it.logs.withheld == 2


def test_a_flush_from_a_third_thread_while_two_others_log() -> None:
    it = Logged()

    def log() -> None:
        for _ in range(300):
            with it.logged("agent"):
                pass

    threads = [threading.Thread(target=log) for _ in range(2)]
    for thread in threads:
        thread.start()
    flushed = [it.loggers.force_flush()]
    while any(thread.is_alive() for thread in threads):
        flushed.append(it.loggers.force_flush())
    assert all(flushed)
    assert it.left == ["agent"] * 600


@pytest.mark.parametrize("what", ["force_flush", "shutdown"])
def test_an_exporter_that_flushes_or_shuts_down_its_own_provider_does_not_wait_for_itself(what: str) -> None:
    answers: list[object] = []
    probe = LogProbe(lambda call: answers.append(getattr(it.loggers, what)()) if call == 1 else None)
    it = Logged(log_exporter=probe)
    it.log("x")
    it.until(lambda: answers)
    assert answers == [False if what == "force_flush" else None]
    it.until(lambda: what == "force_flush" or probe.shutdowns == 1)
    assert probe.bodies == ["x"]


def test_a_callback_of_the_gate_may_flush_and_shut_down_the_records() -> None:
    answers: list[bool] = []
    it: Logged = Logged(on_verdict=lambda _verdict: answers.append(it.loggers.force_flush(100)))
    with it.logged("agent"):
        pass
    it.until(lambda: answers)
    assert answers == [False]
    assert it.left == ["agent"]


def test_where_no_thread_can_start_a_flush_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        probe = LogProbe()
        it = Logged(log_exporter=probe)
        with it.logged("agent"):
            pass
        assert it.loggers.force_flush()
        assert probe.bodies == ["agent"]
        it.log("x")
        it.loggers.shutdown()
    assert (probe.bodies, probe.shutdowns, probe.threads) == (["agent", "x"], 1, {"MainThread"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_sends_nothing_of_its_parent_and_its_own() -> None:
    read, write = os.pipe()
    probe = LogProbe()
    it = Logged(log_exporter=probe)
    it.log("sent before")
    assert it.loggers.force_flush()
    with it.logged("agent", "parent's") as agent:
        it.log("waits at the fork")
        child = os.fork()
        if not child:
            probe.calls.clear()
            with it.logged("agent", "child's"):
                it.log("of the parent's span", agent)
            ok = it.loggers.force_flush()
            os.write(write, repr((ok, sorted(probe.bodies), it.logs.losses)).encode())
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert os.read(read, 1 << 16).decode() == repr((True, ["child's", "of the parent's span"], {}))
    os.close(read)
    os.close(write)
    assert it.loggers.force_flush()
    assert sorted(probe.bodies) == ["parent's", "sent before", "waits at the fork"]


@pytest.mark.parametrize(("sink_of", "exporter_of"), [(http_sink, HttpExporter), (grpc_sink, GrpcExporter)])
def test_by_otlp_a_released_run_arrives_and_a_refused_one_does_not(
    sink_of: Any, exporter_of: Callable[..., Any]
) -> None:
    with sink_of() as sink:
        it = Logged(log_exporter=exporter_of(endpoint=sink.logs_endpoint))
        with it.logged("agent", "good") as good:
            it.log({"a": [1, "b"]}, good, event_name="my.event", attributes={"n": 1})
        with it.logged("agent", "bad") as bad:
            it.start("generation", under=bad)
        assert it.loggers.force_flush()
        it.loggers.shutdown()
    assert [plain(record.body) for record in sink.log_records] == ["good", {"a": [1, "b"]}]
    assert {record.trace_id.hex() for record in sink.log_records} == {format(context_of(good).trace_id, "032x")}
    assert sink.log_records[1].event_name == "my.event"
    assert it.logs.losses == {}


def test_what_no_encoder_takes_costs_no_record() -> None:
    odd = ["half \ud83e", {"when": dt.datetime(2026, 1, 1), 7: {1, 2}}, [object], 1 << 70, float("nan"), b"\xff"]  # noqa: DTZ001
    with http_sink() as sink:
        it = Logged(log_exporter=HttpExporter(endpoint=sink.logs_endpoint))
        with it.open("agent") as agent:
            for body in odd:
                it.log(body, agent)
            it.log("x", agent, timestamp=-1, severity_text="\ud83e", event_name="\ud83e", attributes={"a": "\ud83e"})
        assert it.loggers.force_flush()
        it.loggers.shutdown()
    assert len(sink.log_records) == len(odd) + 1
    assert it.logs.losses == {}


def test_a_processor_that_nobody_holds_is_freed() -> None:
    it = Logged()
    probe = LogProbe()
    second = GateLogRecordProcessor(probe, it.gate)
    second.shutdown()
    assert probe.shutdowns == 1
    reference = weakref.ref(second)
    del second
    gc.collect()
    assert reference() is None


def test_the_provider_of_the_sdk_takes_it_and_asks_whether_it_is_enabled() -> None:
    it = Logged()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(it.logs)
    logger = provider.get_logger("test")
    assert getattr(logger, "enabled", lambda: True)()
