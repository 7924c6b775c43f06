"""Exporters that fail: nothing is lost in silence, and whoever ends spans, flushes or shuts down gets away in time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import context as context_api
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor, SpangateError, _processor, _release
from spangate._buffer.tree import SPAN_OVERHEAD
from tests.live.gated import SOON, Gated, Probe
from tests.otlp_sink import grpc_sink, http_sink


class Hanging(SpanExporter):
    """An exporter that does not come back until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.let_go = threading.Event()
        self.was_shut_down = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the interface's name
        self.calls += 1
        self.let_go.wait(60.0)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.was_shut_down.set()


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.001)
    monkeypatch.setattr("spangate._release.tries.LONGEST_PAUSE_S", 0.001)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    exporter = Hanging()
    yield exporter
    exporter.let_go.set()


def healthy(gated: Gated, name: str = "agent", tools: int = 1) -> None:
    with gated.open("agent", name) as agent:
        for number in range(tools):
            gated.ended("tool", f"{name}/{number}", under=agent)


def answers(*results: Any) -> Callable[[int, Sequence[ReadableSpan]], Any]:
    """Answer each call in turn; the last answer is for all further calls. Exceptions are raised."""

    def answer(call: int, _spans: Sequence[ReadableSpan]) -> Any:
        result = results[min(call, len(results)) - 1]
        if isinstance(result, type) and issubclass(result, BaseException):
            raise result("the exporter's own")
        return result

    return answer


FAILURE, SUCCESS = SpanExportResult.FAILURE, SpanExportResult.SUCCESS


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize("fault", [FAILURE, ConnectionError, SystemExit, asyncio.CancelledError])
def test_what_fails_twice_is_sent_again_and_nothing_is_lost(fault: Any) -> None:
    probe = Probe(answers(fault, fault, SUCCESS))
    gated = Gated(exporter=probe)
    healthy(gated)
    assert gated.flush()
    assert [[span.name for span in call] for call in probe.calls] == [["agent/0", "agent"]] * 3
    assert gated.gate.losses == {}


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (FAILURE, "refused"),
        (PermissionError, "raised PermissionError"),
        (ValueError, "raised ValueError"),
        (SystemExit, "raised SystemExit"),
    ],
)
def test_what_always_fails_is_lost_by_its_reason_and_a_flush_says_so(fault: Any, reason: str) -> None:
    gated = Gated(exporter=Probe(answers(fault)))
    healthy(gated, "one", tools=3)
    assert not gated.flush()
    assert gated.gate.losses.pop(reason) >= 4
    assert set(gated.gate.losses) == {reason}
    healthy(gated, "two")
    assert not gated.flush()
    assert gated.told == {"one": "pass", "two": "pass"}


@pytest.mark.usefixtures("_no_pauses")
def test_a_backend_that_cannot_be_reached_is_waited_for() -> None:
    probe = Probe(answers(*[ConnectionError] * 40, SUCCESS))
    gated = Gated(exporter=probe)
    healthy(gated)
    assert gated.flush()
    assert len(probe.calls) == 41
    assert gated.gate.losses == {}


@pytest.mark.usefixtures("_no_pauses")
def test_what_was_lost_before_a_flush_does_not_count_against_the_next() -> None:
    probe = Probe(answers(*[FAILURE] * 8, SUCCESS))
    gated = Gated(exporter=probe)
    healthy(gated, "lost")
    assert not gated.flush()
    healthy(gated, "arrives")
    assert gated.flush()


def test_an_exporter_that_answers_with_nothing_is_believed_as_the_sdk_believes_it() -> None:
    class Silent(SpanExporter):
        calls = 0

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the interface's name
            self.calls += 1
            return None  # type: ignore[return-value]

    silent = Silent()
    gated = Gated(exporter=silent)
    healthy(gated)
    assert gated.flush()
    assert silent.calls == 1


@pytest.mark.parametrize("answer", [False, RuntimeError, SystemExit])
def test_an_exporter_whose_own_flush_fails_makes_the_flush_fail(answer: Any) -> None:
    class Unflushed(Probe):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  the interface's name
            if answer is False:
                return False
            raise answer("the exporter's own")

    gated = Gated(exporter=Unflushed())
    healthy(gated)
    assert not gated.flush()
    healthy(gated, "next")
    assert not gated.flush()


def test_a_flush_does_not_wait_for_pauses_beyond_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 30.0)
    gated = Gated(exporter=Probe(answers(FAILURE)))
    healthy(gated)
    start = time.monotonic()
    assert not gated.flush(0.1)
    gated.gate.shutdown()  # which cuts the pause short
    assert time.monotonic() - start < SOON


def test_without_threads_there_is_no_pause_beyond_the_deadline_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 30.0)
    monkeypatch.setattr(threading.Thread, "start", _cannot_start)
    probe = Probe(answers(FAILURE))
    gated = Gated(exporter=probe)
    healthy(gated)
    start = time.monotonic()
    assert not gated.flush(0.1)
    assert time.monotonic() - start < SOON
    assert [len(call) for call in probe.calls] == [2, 1]
    assert gated.gate.losses == {"refused": 3}


def _cannot_start(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_hanging_exporter_blocks_no_hook_and_a_flush_returns_in_time(hanging: Hanging) -> None:
    gated = Gated(exporter=hanging)
    healthy(gated, "first")
    start = time.monotonic()
    assert not gated.flush(0.05)
    for number in range(50):
        healthy(gated, f"{number}")
    gated.until(lambda: len(gated.verdicts) == 51)  # judging goes on
    assert time.monotonic() - start < SOON
    hanging.let_go.set()
    assert gated.flush()
    assert gated.gate.losses == {}


def test_a_shutdown_gives_a_hanging_exporter_up_and_counts_what_it_had_not_taken(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_processor, "SHUTDOWN_S", 0.2)
    gated = Gated(exporter=hanging)
    healthy(gated, "first", tools=2)
    gated.until(lambda: hanging.calls)
    healthy(gated, "second", tools=3)
    start = time.monotonic()
    gated.gate.shutdown()
    assert time.monotonic() - start < SOON
    assert gated.gate.losses == {"shutdown": 7}
    assert hanging.was_shut_down.is_set()
    hanging.let_go.set()
    assert gated.flush()  # there is nothing to flush any more


def test_what_a_hanging_exporter_takes_in_the_end_is_not_sent_twice_nor_counted_twice(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_processor, "SHUTDOWN_S", 0.2)
    gated = Gated(exporter=hanging)
    healthy(gated, tools=2 * _release.CHUNK_SPANS)
    gated.until(lambda: hanging.calls)
    gated.gate.shutdown()
    lost = 2 * _release.CHUNK_SPANS + 1
    assert gated.gate.losses == {"shutdown": lost}
    hanging.let_go.set()
    gated.gate._worker._threads[1].join(SOON)
    assert hanging.calls == 1
    assert gated.gate.losses == {"shutdown": lost}


def test_of_a_run_that_takes_many_calls_each_of_several_exporters_gets_everything() -> None:
    first, second = InMemorySpanExporter(), InMemorySpanExporter()
    gated = Gated(exporter=[first, second])  # type: ignore[arg-type]
    healthy(gated, tools=3 * _release.CHUNK_SPANS)
    assert gated.flush()
    assert gated.gate.losses == {}
    for exporter in (first, second):
        left = [span.name for span in exporter.get_finished_spans()]
        assert (len(left), len(set(left))) == (3 * _release.CHUNK_SPANS + 1, 3 * _release.CHUNK_SPANS + 1)


def test_a_shutdown_of_the_exporter_that_hangs_does_not_keep_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processor, "SHUTDOWN_S", 0.2)
    let_go = threading.Event()

    class Stuck(Probe):
        def shutdown(self) -> None:
            let_go.wait(60.0)

    gated = Gated(exporter=Stuck())
    healthy(gated)
    start = time.monotonic()
    gated.gate.shutdown()
    assert time.monotonic() - start < SOON
    let_go.set()


def test_an_exporter_that_cannot_be_shut_down_disturbs_nobody() -> None:
    class Broken(Probe):
        def shutdown(self) -> None:
            raise RuntimeError("the exporter's own")

    for is_used in (True, False):
        gated = Gated(exporter=Broken())
        if is_used:
            healthy(gated)
        gated.gate.shutdown()


def test_what_waits_for_a_hanging_exporter_is_bounded_in_memory(hanging: Hanging) -> None:
    room = 40
    gated = Gated(exporter=hanging, max_held_bytes=room * SPAN_OVERHEAD)
    for batch in range(0, 200, 10):  # few at a time: what waits for its verdict has a bound too
        for number in range(batch, batch + 10):
            healthy(gated, f"{number}")
        gated.until(lambda judged=batch + 10: len(gated.verdicts) == judged)  # type: ignore[misc]
    (sender,) = gated.gate._sender.senders
    assert sender._taken_in - sender._dealt_with <= room * SPAN_OVERHEAD
    assert gated.gate.losses["backlog"] >= 400 - room
    hanging.let_go.set()
    assert not gated.flush()
    assert gated.gate.losses["backlog"] + gated.gate._telemetry.released == 400


def test_one_run_that_cannot_be_written_costs_those_beside_it_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.001)
    arrived: list[str] = []

    def picky(_call: int, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        names = [span.name for span in spans]
        if "bad/0" in names:
            raise TypeError("a span that this exporter cannot write")
        arrived.extend(names)
        return SUCCESS

    gated = Gated(exporter=Probe(picky), settle_s=3600.0)  # so that all three leave together
    for name in ("one", "bad", "two"):
        healthy(gated, name)
    assert not gated.flush()
    assert sorted(arrived) == ["one", "one/0", "refused bad", "two", "two/0"]
    assert gated.gate.losses == {"raised TypeError": 2}


# The exporter of the environment


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
@pytest.mark.parametrize(
    ("protocol", "sink", "exporter"),
    [("grpc", grpc_sink, GRPCExporter), ("http/protobuf", http_sink, HTTPExporter)],
)
def test_without_an_exporter_the_environment_says_where_to(
    protocol: str, sink: Any, exporter: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sink() as received:
        monkeypatch.setenv(name, protocol)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", received.endpoint)
        gated = Gated()
        gated.gate.shutdown()
        gate = GateSpanProcessor()
        gated.add_span_processor(gate)
        assert isinstance(gate._exporters[0], exporter)
        healthy(gated)
        assert gate.force_flush()
        assert received.names == ["agent/0", "agent"]
        gate.shutdown()


def test_the_protocol_for_traces_goes_before_the_one_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    gate = GateSpanProcessor()
    assert isinstance(gate._exporters[0], HTTPExporter)
    gate.shutdown()


def test_without_a_protocol_it_is_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_PROTOCOL", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", raising=False)
    gate = GateSpanProcessor()
    assert isinstance(gate._exporters[0], GRPCExporter)
    gate.shutdown()


@pytest.mark.parametrize("protocol", ["http/json", "thrift", " grpc"])
def test_a_protocol_that_there_is_no_exporter_for_is_named(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", raising=False)
    with pytest.raises(SpangateError, match=f"OTEL_EXPORTER_OTLP_PROTOCOL='{protocol}': this may be grpc or http"):
        GateSpanProcessor()


# What an exporter does itself


@pytest.mark.parametrize("key", ["suppress_instrumentation", context_api._SUPPRESS_INSTRUMENTATION_KEY])
def test_what_an_exporter_does_is_not_traced(key: str) -> None:
    """An instrumented HTTP client would otherwise make a span of each export, which would be exported."""
    quiet: list[object] = []

    class Calling(Probe):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  the interface's name
            quiet.append(context_api.get_value(key))
            return True

        def shutdown(self) -> None:
            quiet.append(context_api.get_value(key))

    def answer(_call: int, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        quiet.append(context_api.get_value(key))
        return SUCCESS

    gated = Gated(exporter=Calling(answer))
    healthy(gated)
    assert gated.flush()
    gated.gate.shutdown()
    assert quiet == [True, True, True, True]  # the shutdown flushes once more
    assert context_api.get_value(key) is None
