"""What programs send enters the run of whoever started them, and is released or refused with it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, use_span

from spangate import GateSpanProcessor, SpangateError, process
from spangate.process import Receiver
from tests.live.gated import Gated
from tests.receiver.sender import Sender, as_what, open_run


class TestReleasedWithItsRun:
    def test_over_http(self, sender: Sender) -> None:
        assert sender.post(sender.request("work", "more").SerializeToString()).status_code == 200
        assert sender.finish() == "pass"
        gated = sender.gated
        assert {"work", "more"} < {*gated.names}
        assert gated.attributes("work")["spangate.run_id"] == gated.verdicts[0].run_id
        assert gated.attributes("agent")["spangate.spans_ended"] == 4
        assert gated.names[-1] == "agent"

    @pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
    def test_over_grpc(self, sender: Sender, compression: grpc.Compression) -> None:
        sender.call(sender.request("work"), compression=compression)
        assert sender.finish() == "pass"
        assert "work" in sender.gated.names

    def test_over_http_with_json(self, sender: Sender) -> None:
        trace_id, parent_id = sender.parent
        span = {"traceId": f"{trace_id:032x}", "spanId": "00000000000000aa", "parentSpanId": f"{parent_id:016x}"}
        span |= {
            "name": "work",
            "startTimeUnixNano": str(sender.root.start_time),
            "endTimeUnixNano": str(time.time_ns()),
        }
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
        answer = sender.post(body, **{"content-type": "application/json"})
        assert (answer.status_code, answer.json()) == (200, {})
        assert sender.finish() == "pass"
        assert "work" in sender.gated.names

    def test_everything_that_a_span_holds_stays(self, sender: Sender) -> None:
        request = sender.request("work", trace_state="vendor=1", kind=3)
        resource = request.resource_spans[0]
        resource.schema_url, resource.scope_spans[0].schema_url = "https://r", "https://s"
        resource.resource.attributes.add(key="service.name").value.string_value = "child"
        resource.scope_spans[0].scope.name = "scope"
        resource.scope_spans[0].scope.version = "1.2"
        span = resource.scope_spans[0].spans[0]
        for kind, value in (("string", "ö"), ("int", -5), ("double", 0.5), ("bool", True), ("bytes", b"\0")):
            setattr(span.attributes.add(key=kind).value, f"{kind}_value", value)
        span.attributes.add(key="list").value.array_value.values.add(int_value=1)
        span.events.add(name="event", time_unix_nano=5).attributes.add(key="e").value.int_value = 1
        span.links.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, flags=0x301)
        span.status.code, span.status.message = 2, "broken"
        sender.call(request)
        sender.root.set_status(StatusCode.ERROR)
        sender.finish()
        found = sender.gated.one("work")
        kept = {key: value for key, value in (found.attributes or {}).items() if not key.startswith("spangate.")}
        assert kept == {"string": "ö", "int": -5, "double": 0.5, "bool": True, "bytes": b"\0", "list": (1,)}
        assert found.resource.attributes == {"service.name": "child"}
        scope = found.instrumentation_scope
        assert scope is not None
        assert (scope.name, scope.version, scope.schema_url) == ("scope", "1.2", "https://s")
        assert (found.status.status_code.name, found.status.description) == ("ERROR", "broken")
        assert [(event.name, event.timestamp, event.attributes) for event in found.events] == [("event", 5, {"e": 1})]
        assert [link.context.trace_id for link in found.links] == [int.from_bytes(b"\1" * 16, "big")]
        assert found.kind.name == "CLIENT"
        assert found.context.trace_state.to_header() == "vendor=1"

    @pytest.mark.parametrize("what", ["attributes", "events", "links"])
    def test_what_its_sdk_dropped_is_noticed(self, sender: Sender, what: str) -> None:
        sender.call(as_what("execute_tool", sender.request("work", **{f"dropped_{what}_count": 3})))
        assert sender.finish() == "fail cardinality.attributes_dropped"
        assert f"3 {what}" in sender.gated.verdicts[0].findings[0].detail

    def test_in_many_requests(self, sender: Sender) -> None:
        for number in range(20):
            sender.call(sender.request(f"work {number}", span_id=(number + 1).to_bytes(8, "big")))
        assert sender.finish() == "pass"
        assert sender.gated.attributes("agent")["spangate.spans_ended"] == 22


class TestRefusedWithItsRun:
    def test_a_fault_here_keeps_back_what_programs_sent(self, sender: Sender) -> None:
        sender.call(sender.request("work"))
        sender.gated.start("tool", "leaked", under=sender.root)
        assert sender.finish() == "fail completeness.open_span"
        assert sender.gated.names == ["refused agent"]
        assert sender.gated.attributes("refused agent")["spangate.spans_withheld"] == 3

    FAULTS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
        ("its parent is nowhere", {"parent_span_id": b"\7" * 8}, "fail forest.parent_outside_run"),
        ("its local parent is nowhere", {"parent_span_id": b"\7" * 8, "flags": 0}, "fail forest.missing_parent"),
        ("a root in the run's trace", {"parent_span_id": b""}, "fail forest.multiple_roots"),
        ("a trace of its own", {"trace_id": b"\7" * 16, "parent_span_id": b""}, "fail forest.stray_root"),
        ("a trace of somebody", {"trace_id": b"\7" * 16}, "forest.parent_outside_run"),
        ("no end", {"end_time_unix_nano": 0}, "fail completeness.open_span"),
        ("an end before its start", {"end_time_unix_nano": 5}, "fail timing.inverted_span"),
    )

    @pytest.mark.parametrize(("what", "fields", "said"), FAULTS)
    def test_a_fault_there(self, sender: Sender, what: str, fields: Mapping[str, Any], said: str) -> None:
        sender.call(sender.request("work", **fields))
        assert said in sender.finish(), what
        assert sender.gated.names == ["refused agent"]

    def test_who_ignored_the_context_is_named(self, sender: Sender) -> None:
        sender.call(sender.request("work", trace_id=b"\7" * 16, parent_span_id=b""))
        sender.finish()
        (finding,) = sender.gated.verdicts[0].failures
        program = sender.gated.verdicts[0].root
        assert "ignored the context" in finding.detail
        assert f"{sender.parent[1]:016x}" in finding.detail
        assert program.name == "agent"


class TestWhoIsToldOfIt:
    def test_a_program_outside_any_trace_goes_its_own_way(self, gated: Gated) -> None:
        told = process.check_output(["/usr/bin/env"], text=True)
        assert "TRACEPARENT" in told
        assert "SPANGATE_RECEIVER" not in told
        assert gated.gate.received == 0

    def test_nobody_is_told_without_a_receiver(self) -> None:
        gated = Gated()
        process.use_provider(gated)
        with use_span(gated.start("agent"), end_on_exit=True):
            told = process.check_output(["/usr/bin/env"], text=True)
        process.use_provider(None)
        assert "TRACEPARENT" in told
        assert "OTEL_EXPORTER_OTLP_TRACES" not in told
        gated.shutdown()

    def test_proxies_are_told_to_leave_it_alone(self, gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "http://proxy:3128")
        monkeypatch.setenv("no_proxy", "example.org")
        with open_run(gated) as sender:
            assert sender.environment["no_proxy"] == "example.org,127.0.0.1"
            assert sender.environment["NO_PROXY"] == "127.0.0.1"

    def test_spans_are_to_come_soon_unless_somebody_has_said_when(
        self, gated: Gated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with open_run(gated, "one") as sender:
            assert sender.environment["OTEL_BSP_SCHEDULE_DELAY"] == "100"
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3000")
        with open_run(gated, "two") as sender:
            assert sender.environment["OTEL_BSP_SCHEDULE_DELAY"] == "3000"

    def test_who_has_said_when_is_heard_by_a_program_that_inherits_nothing(
        self, gated: Gated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3000")
        with open_run(gated, environment={"PATH": os.environ["PATH"]}) as sender:
            assert sender.environment["OTEL_BSP_SCHEDULE_DELAY"] == "3000"

    def test_metrics_and_logs_stay_where_they_were(self, gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
        with open_run(gated) as sender:
            assert sender.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
            assert sender.environment["OTEL_EXPORTER_OTLP_HEADERS"] == "api-key=secret"
            assert sender.environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].startswith("http://127.0.0.1:")


class TestBounds:
    def test_a_run_of_too_many_spans_is_judged_as_it_stands(self) -> None:
        gated = Gated(receiver=Receiver(), max_run_spans=100)
        process.instrument(gated)
        with open_run(gated) as sender:
            sender.call(sender.request(*map(str, range(150))))
            gated.until(lambda: gated.verdicts)
        assert "buffer.overflow" in gated.told["agent"]
        process.uninstrument()
        gated.shutdown()

    def test_what_weighs_too_much_is_judged_as_it_stands(self) -> None:
        gated = Gated(receiver=Receiver(), max_held_bytes=1 << 20)
        process.instrument(gated)
        with open_run(gated) as sender:
            for number in range(4):
                big = sender.request("x" * (400 << 10), span_id=(number + 1).to_bytes(8, "big"))
                sender.post(big.SerializeToString())
            gated.until(lambda: gated.verdicts)
        assert "buffer.overflow" in gated.told["agent"]
        process.uninstrument()
        gated.shutdown()

    def test_more_spans_than_there_is_room_for_are_refused_and_told(self) -> None:
        gated = Gated(receiver=Receiver(), max_held_bytes=1 << 20)
        process.instrument(gated)
        with open_run(gated) as sender:
            assert sender.post(sender.request(*map(str, range(2000))).SerializeToString()).status_code == 503
            assert "buffer.overflow" in sender.finish()
        assert gated.gate.refused_requests == {"busy": 1}
        process.uninstrument()
        gated.shutdown()


class TestWithoutTheExtra:
    def test_the_error_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "hypercorn.asyncio", None)
        with pytest.raises(SpangateError, match=r"pip install 'spangate\[receiver\]'"):
            GateSpanProcessor(receiver=Receiver())

    def test_two_gates_have_two_ports(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        gates = [GateSpanProcessor(InMemorySpanExporter(), receiver=Receiver()) for _ in range(2)]
        addresses = {gate._door._server.address for gate in gates}  # type: ignore[union-attr]
        assert len(addresses) == 2
        for gate in gates:
            provider.add_span_processor(gate)
        provider.shutdown()
