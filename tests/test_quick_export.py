"""Spans leave the OTLP/HTTP exporter as they always did: the quicker encoder writes the bytes that the SDK's writes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceState

from spangate import GateSpanProcessor
from spangate._sdk.encoder import encode
from spangate._sdk.quick_export import WayOut
from tests import recordings
from tests.otlp_sink import http_sink
from tests.replay import environment, play

HALF = "half an emoji \ud83e"
RESOURCE = Resource({"service.name": "agent"})


def no_rest() -> None:
    """Go on at once."""


def span(name: str = "span", **fields: Any) -> ReadableSpan:
    known: dict[str, Any] = {
        "context": SpanContext(1, 2, is_remote=False),
        "resource": RESOURCE,
        "start_time": 1,
        "end_time": 2,
        "instrumentation_scope": InstrumentationScope("scope", "1"),
    }
    return ReadableSpan(name, **{**known, **fields})


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)
scalars = words | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats() | st.binary(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)
keys = words.filter(bool)
attributes = st.dictionaries(keys, values, max_size=8)
plain = st.dictionaries(keys, words | st.integers(0, 9) | st.lists(words, max_size=3), max_size=4)
"""What every SDK takes anywhere; below spans, older ones replace what is nested."""
moments = st.integers(0, (1 << 64) - 1)
ids = st.integers(1, (1 << 64) - 1)
states = st.just(TraceState()) | st.just(TraceState([("vendor", "1"), ("other", "2")]))
contexts = st.builds(SpanContext, ids, ids, is_remote=st.booleans(), trace_state=states)
scopes = st.none() | st.builds(InstrumentationScope, words, st.none() | words, st.none() | words)
spans = st.builds(
    span,
    words,
    context=contexts,
    parent=st.none() | contexts,
    resource=st.builds(Resource, plain, st.none() | words),
    attributes=st.none() | attributes,
    events=st.lists(st.builds(Event, words, plain, moments), max_size=2),
    links=st.lists(st.builds(Link, contexts, plain), max_size=2),
    kind=st.sampled_from(SpanKind),
    status=st.sampled_from(StatusCode).map(Status) | st.builds(Status, st.just(StatusCode.ERROR), words),
    start_time=st.none() | moments,
    end_time=st.none() | moments,
    instrumentation_scope=scopes,
)


@given(st.lists(spans, max_size=5))
def test_every_span_is_written_byte_by_byte_as_the_sdk_writes_it(written: list[ReadableSpan]) -> None:
    encoded = encode(written, no_rest)
    assert encoded.odd == []
    assert encoded.content == encode_spans(written).SerializePartialToString()


@pytest.mark.parametrize("name", recordings.names())
def test_recorded_runs_are_written_as_the_sdk_writes_them(name: str) -> None:
    exporter = InMemorySpanExporter()
    with environment({}):
        exported = play(list(recordings.rows(name)), GateSpanProcessor(exporter), exporter, "shutdown").exported
    encoded = encode(exported, no_rest)
    assert (encoded.content, encoded.odd) == (encode_spans(exported).SerializePartialToString(), [])


SHARED = [Resource({"a": 1}), Resource({"a": 1}), Resource({"a": 2})]
SCOPES = [InstrumentationScope("a"), InstrumentationScope("a"), InstrumentationScope("b"), None]


def test_spans_stand_below_what_they_share_whether_it_is_the_same_or_merely_equal() -> None:
    mixed = [span(resource=resource, instrumentation_scope=scope) for scope in SCOPES for resource in SHARED] * 2
    assert encode(mixed, no_rest).content == encode_spans(mixed).SerializePartialToString()


ODD = {
    "half a character in a value": span(attributes={"value": HALF}),
    "half a character in a list": span(attributes={"value": ["whole", HALF]}),
    "half a character in a key": span(attributes={HALF: 1}),
    "half a character in an event": span(events=[Event("event", {"value": HALF}, 1)]),
    "half a character in the resource": span(resource=Resource({"service.name": HALF})),
    "half a character in the scope": span(
        instrumentation_scope=InstrumentationScope("scope", attributes={"value": HALF})
    ),
    "a number beyond 64 bits": span(attributes={"value": 1 << 63}),
    "a number below 64 bits": span(attributes={"value": -(1 << 63) - 1}),
    "an object": span(attributes={"value": object()}),
    "nothing": span(attributes={"value": None}),
}


@pytest.fixture
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "opentelemetry")  # the SDK's encoder tells of each value that it leaves out


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_the_sdk_says_what_becomes_of_odd_spans_and_the_others_are_written_quickly(odd: ReadableSpan) -> None:
    ordinary = span("ordinary", parent=SpanContext(1, 3, is_remote=False))
    encoded = encode([odd, ordinary], no_rest)
    assert encoded.odd == [odd]
    assert encoded.content == encode_spans([ordinary]).SerializePartialToString()
    with http_sink() as sink:
        exporter = OTLPSpanExporter(sink.endpoint)
        assert WayOut(exporter, no_rest)([odd, ordinary]) is SpanExportResult.SUCCESS
        assert exporter.export([odd]) is SpanExportResult.SUCCESS
    ours, theirs = sink.requests
    assert sink.names[:2] == ["ordinary", "span"]
    assert ours.resource_spans[1] == theirs.resource_spans[0]


def outcome(export: Callable[[Sequence[ReadableSpan]], SpanExportResult], odd: ReadableSpan) -> object:
    try:
        return export([odd])
    except ValueError as error:
        return str(error)


@pytest.mark.usefixtures("_quiet")
def test_a_span_that_no_encoder_takes_fails_as_it_does_with_the_exporter() -> None:
    exporter = OTLPSpanExporter("http://127.0.0.1:9/v1/traces")
    ours, theirs = (outcome(export, span(start_time=-1)) for export in (WayOut(exporter, no_rest), exporter.export))
    assert ours == theirs


def test_rests_are_taken_between_spans() -> None:
    rests: list[int] = []
    encode([span()] * 100, lambda: rests.append(1))
    assert len(rests) == 3


class Seen:
    """Counts how many spans the SDK's encoder is asked for."""

    def __init__(self) -> None:
        self.spans = 0

    def __call__(self, spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        self.spans += len(spans)
        return encode_spans(spans)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    seen = Seen()
    monkeypatch.setattr(trace_exporter, "encode_spans", seen)
    return seen


class Renamed(OTLPSpanExporter):
    """Somebody's exporter that is the SDK's but for its name."""


class Counting(OTLPSpanExporter):
    """Somebody's exporter that looks at what leaves."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return super().export([*spans, span("counted")])


@pytest.mark.parametrize("kind", [OTLPSpanExporter, Renamed])
def test_the_sdks_exporter_asks_the_quicker_encoder(seen: Seen, kind: type[OTLPSpanExporter]) -> None:
    with http_sink() as sink:
        way_out = WayOut(kind(sink.endpoint), no_rest)
        seen.spans = 0  # the probe's
        assert way_out([span("one"), span("two")]) is SpanExportResult.SUCCESS
    assert (sink.names, seen.spans) == (["one", "two"], 0)


def test_an_exporter_that_does_something_of_its_own_does_it(seen: Seen) -> None:
    with http_sink() as sink:
        WayOut(Counting(sink.endpoint), no_rest)([span("one")])
    assert (sink.names, seen.spans) == (["one", "counted"], 2)


@pytest.mark.parametrize("of", ["class", "instance"])
def test_what_is_put_in_the_place_of_export_later_is_called(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = OTLPSpanExporter("http://127.0.0.1:9/v1/traces")
    way_out = WayOut(exporter, no_rest)
    calls: list[Any] = []
    monkeypatch.setattr(OTLPSpanExporter if of == "class" else exporter, "export", lambda *spans: calls.append(spans))
    way_out([span()])
    assert len(calls) == 1


def test_an_encoder_that_writes_anything_else_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_flags(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        request = encode_spans(spans)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for written in scope.spans:
                    written.flags = 0
        return request

    monkeypatch.setattr(trace_exporter, "encode_spans", without_flags)
    with http_sink() as sink:
        WayOut(OTLPSpanExporter(sink.endpoint), no_rest)([span()])
    assert [span.flags for span in sink.spans] == [0]


def test_an_encoder_that_breaks_on_the_probe_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_short_names(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        if len(spans[0].name) > 4:
            raise ValueError(spans[0].name)
        return ExportTraceServiceRequest()

    monkeypatch.setattr(trace_exporter, "encode_spans", only_short_names)
    with http_sink() as sink:
        assert WayOut(OTLPSpanExporter(sink.endpoint), no_rest)([span()]) is SpanExportResult.SUCCESS
    assert sink.names == []


def test_an_exporter_that_is_a_double_or_a_proxy_is_called_as_ever() -> None:
    kept: list[Any] = []
    exporter: Any = SimpleNamespace(export=kept.extend, shutdown=no_rest, force_flush=lambda: True)
    gate = GateSpanProcessor(exporter)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(gate)
    provider.get_tracer("test").start_span("kept").end()
    assert gate.force_flush()
    assert [one.name for one in kept] == ["kept"]
    provider.shutdown()


def test_an_export_of_the_sdk_that_has_a_closure_is_run_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def export(_self: Any, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        written.append(encode_spans(spans).SerializePartialToString())
        return SpanExportResult.SUCCESS

    monkeypatch.setattr(OTLPSpanExporter, "export", export)
    exporter = OTLPSpanExporter("http://127.0.0.1:9/v1/traces")
    assert WayOut(exporter, no_rest)([span()]) is SpanExportResult.SUCCESS
    assert written == [encode_spans([span()]).SerializePartialToString()]


@pytest.mark.parametrize("module", [None, SimpleNamespace()], ids=["not imported", "without the class"])
def test_without_the_sdks_exporter_there_is_no_other_way(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, trace_exporter.__name__, module)
    exporter = InMemorySpanExporter()
    assert WayOut(exporter, no_rest)([span("kept")]) is SpanExportResult.SUCCESS
    assert [kept.name for kept in exporter.get_finished_spans()] == ["kept"]


def test_the_exporter_for_grpc_is_left_alone() -> None:
    exporter = GRPCExporter("127.0.0.1:9", insecure=True)
    assert WayOut(exporter, no_rest)._quick is None  # no telling from outside
    exporter.shutdown()


def test_after_its_shutdown_an_exporter_refuses_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    exporter = OTLPSpanExporter("http://127.0.0.1:9/v1/traces")
    way_out = WayOut(exporter, no_rest)
    exporter.shutdown()  # type: ignore[no-untyped-call]
    assert way_out([span()]) is SpanExportResult.FAILURE
    assert "already shutdown" in caplog.text
