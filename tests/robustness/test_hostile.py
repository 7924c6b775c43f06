"""Odd values on their way through the gate and the real exporters to a receiver: no run is lost over one of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags, set_span_in_context

from tests.live.gated import Gated
from tests.otlp_sink import Sink, grpc_sink, http_sink
from tests.process.agent import GATES

HALF = "half an emoji \ud83e"
MIB = 1 << 20

VALUES: Mapping[str, Any] = {
    "none": None,
    "nested": {"a": [1, {"b": None}], "c": {"d": {"e": "f"}}},
    "not a number": float("nan"),
    "infinite": float("-inf"),
    "half": HALF,
    "halves": [HALF, "whole"],
    "one MiB": "x" * MIB,
    "bytes": b"\xff\x00",
    "cut JSON": '{"messages": [{"role": "us',
    "mixed": [1, "a", None, 2.5, True],
    "empty": "",
    "huge": 1 << 70,
    "negative": -1,
    "an object": object(),
    "a set": {1, 2},
    "deep": "[" * 2000,
    "null character": "a\0b",
}
"""Attribute values that anybody may set."""

ACTS: Mapping[str, Callable[[Span], object]] = {
    "no name": lambda span: span.update_name(None),
    "half a name": lambda span: span.update_name(HALF),
    "half a status": lambda span: span.set_status(Status(StatusCode.ERROR, HALF)),
    "a number for a status": lambda span: span.set_status(Status(2)),  # type: ignore[arg-type]
    "half an event": lambda span: span.add_event(HALF, {"x": HALF}),
    "an event in words": lambda span: span.add_event("event", {}, "now"),  # type: ignore[arg-type]
    "an event before time": lambda span: span.add_event("event", {}, -5),
    "an event after all time": lambda span: span.add_event("event", {}, 1 << 70),
    "an event between two moments": lambda span: span.add_event("event", {}, 1.5),  # type: ignore[arg-type]
    "a link to nowhere": lambda span: span.add_link(SpanContext(0, 0, is_remote=False)),
    "half a link": lambda span: span.add_link(
        SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)), {"x": HALF}
    ),
    "half a key": lambda span: span.set_attribute(HALF, 1),
    "half an exception": lambda span: span.record_exception(ValueError(HALF)),
    "an operation that is a number": lambda span: span.set_attribute("gen_ai.operation.name", 5),
    "an operation that is a list": lambda span: span.set_attribute("gen_ai.operation.name", ["chat"]),
}
"""What anybody may do to a live span."""

STARTS: Mapping[str, Mapping[str, Any]] = {
    "no kind": {"kind": None},
    "a kind in words": {"kind": "server"},
    "a kind that is a number": {"kind": 2},
    "a kind that is a list": {"kind": [1]},
    "a start between two moments": {"start_time": 1.7e18},
}
"""How anybody may start a span."""

SCOPES: Mapping[str, tuple[Any, ...]] = {
    "half a scope": (HALF,),
    "half a version": ("scope", HALF),
    "half a schema": ("scope", "1.0", HALF),
    "a scope that is a number": (5,),
    "a version that is a number": ("scope", 7),
}
"""What anybody may call an instrumentation."""


@pytest.fixture(params=["http", "grpc"])
def received(request: pytest.FixtureRequest) -> Iterator[tuple[Sink, SpanExporter]]:
    sink: Callable[[], AbstractContextManager[Sink]] = http_sink if request.param == "http" else grpc_sink
    with sink() as sink_:
        if request.param == "http":
            yield sink_, HTTPExporter(endpoint=sink_.endpoint)
        else:
            yield sink_, GRPCExporter(endpoint=sink_.endpoint, insecure=True)


@pytest.fixture
def gated(received: tuple[Sink, SpanExporter], caplog: pytest.LogCaptureFixture) -> Gated:
    caplog.set_level(logging.CRITICAL, "opentelemetry")  # exporters tell of each attribute that they cannot write
    resource = Resource({"service.name": HALF, "half": [HALF]})
    return Gated(exporter=received[1], gates=GATES, provider={"resource": resource})


def check(gated: Gated, sink: Sink, cases: Mapping[str, Any]) -> None:
    assert gated.flush()
    assert gated.gate.losses == {}
    verdicts = {case: verdict for case, verdict in gated.told.items() if not verdict.startswith("pass")}
    assert verdicts == {}
    traces = {span.trace_id for span in sink.spans}
    assert len(traces) == len(cases)
    assert len(sink.spans) == 2 * len(cases)
    assert {sink.attributes(case)["spangate.verdict"] for case in cases} == {"pass"}


def test_no_value_costs_a_run(gated: Gated, received: tuple[Sink, SpanExporter]) -> None:
    sink, _ = received
    for case, value in VALUES.items():
        with gated.open("agent", case) as agent, gated.open("tool", f"tool with {case}", under=agent) as tool:
            tool.set_attribute("value", value)
            tool.add_event("event", {"value": value})
    check(gated, sink, VALUES)
    assert sink.attributes("tool with cut JSON")["value"] == VALUES["cut JSON"]
    assert sink.attributes("tool with one MiB")["value"] == VALUES["one MiB"]


def test_nothing_that_is_done_to_a_span_costs_a_run(gated: Gated, received: tuple[Sink, SpanExporter]) -> None:
    sink, _ = received
    for case, act in ACTS.items():
        with gated.open("agent", case) as agent, gated.open("tool", f"tool with {case}", under=agent) as tool:
            act(tool)
    check(gated, sink, ACTS)


def test_no_start_costs_a_run(gated: Gated, received: tuple[Sink, SpanExporter]) -> None:
    sink, _ = received
    for case, start in STARTS.items():
        with gated.open("agent", case, start_time=1_600_000_000_000_000_000) as agent:
            gated.ended("tool", f"tool with {case}", under=agent, **start)
    check(gated, sink, STARTS)


def test_no_scope_costs_a_run(gated: Gated, received: tuple[Sink, SpanExporter]) -> None:
    sink, _ = received
    for case, scope in SCOPES.items():
        with gated.open("agent", case) as agent:
            gated.get_tracer(*scope).start_span(f"tool with {case}", context=set_span_in_context(agent)).end()
    check(gated, sink, SCOPES)


def test_a_span_that_weighs_more_than_a_receiver_takes_is_refused_with_a_verdict_that_arrives(
    gated: Gated, received: tuple[Sink, SpanExporter]
) -> None:
    sink, _ = received
    with gated.open("agent", "heavy") as agent:
        gated.ended("tool", under=agent, attributes={"result": "x" * (4 * MIB + 1)})
    with gated.open("agent", "light") as agent:
        gated.ended("tool", under=agent)
    assert gated.flush()
    assert gated.told["heavy"] == "fail cardinality.span_bytes"
    assert sorted(sink.names) == ["light", "refused heavy", "tool"]


def test_a_run_of_many_heavy_spans_arrives_in_pieces_that_a_receiver_takes(
    gated: Gated, received: tuple[Sink, SpanExporter]
) -> None:
    sink, _ = received
    with gated.open("agent", "heavy") as agent:
        for number in range(9):
            gated.ended("tool", f"{number}", under=agent, attributes={"result": "x" * MIB})
    assert gated.flush()
    assert gated.told == {"heavy": "pass"}
    assert [span.name for span in sink.spans] == [*map(str, range(9)), "heavy"]
    assert len(sink.requests) > 3


def test_a_receiver_that_refuses_twice_gets_everything_once(
    gated: Gated, received: tuple[Sink, SpanExporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.001)
    sink, _ = received
    sink.refusals = 2
    with gated.open("agent") as agent:
        gated.ended("tool", under=agent)
    assert gated.flush()
    assert sink.names == ["tool", "agent"]
    assert gated.gate.losses == {}


def test_a_receiver_that_refuses_everything_makes_losses_that_are_counted(
    gated: Gated, received: tuple[Sink, SpanExporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.001)
    sink, _ = received
    sink.refusals = 1 << 30
    with gated.open("agent") as agent:
        gated.ended("tool", under=agent)
    assert not gated.flush()
    assert sink.names == []
    assert gated.gate.losses["refused"] >= 2


@pytest.mark.parametrize("key", ["gen_ai.input.messages", "input.value"])
@pytest.mark.parametrize("prompt", [5, True, 2.5, ["a", "b"], ""])
def test_a_prompt_that_is_no_text_when_its_span_starts_costs_no_span(key: str, prompt: Any) -> None:
    gated = Gated()
    tracer = gated.get_tracer("app")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat", key: prompt}).end()
    assert gated.flush()
    assert gated.gate.losses == {}
    assert len(gated.names) == 2
