"""The shortcut into the SDK's spans: it says what the properties say, and where it cannot, the properties are asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from spangate._sdk import fields as _fields
from spangate._sdk.fields import put, started, whole

CONTEXT = SpanContext(1, 2, is_remote=False)


class Keeper(SpanProcessor):
    """Keeps what the SDK hands over."""

    def __init__(self) -> None:
        self.live: list[Span] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: object = None) -> None:  # noqa: ARG002  the SDK's signature
        self.live.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


def recorded(limit: int | None = None, **arguments: Any) -> tuple[Span, ReadableSpan]:
    """Return a span as it was when it started, and as it ended: with events, links, and what the SDK dropped."""
    keeper = Keeper()
    limits = SpanLimits(max_span_attributes=limit, max_events=2, max_links=2)
    provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(keeper)
    span = provider.get_tracer("scope", "1.0").start_span("name", **arguments)
    for number in range(3):
        span.add_event(f"event {number}", {"number": number})
    span.set_status(Status(StatusCode.ERROR, "why"))
    span.end()
    return keeper.live[0], keeper.ended[0]


def told(span: ReadableSpan) -> list[Any]:
    """Return what the properties of a span say, in the order of ``whole``."""
    scope = span.instrumentation_scope
    assert scope is not None
    return [
        *(span.context, span.parent, span.name, span.kind, span.start_time, span.end_time, scope.name, scope.version),
        *(span.status.status_code, span.status.description, dict(span.attributes or {}), span.events, span.links),
        *(span.dropped_attributes, span.dropped_events, span.dropped_links, dict(span.resource.attributes)),
    ]


def plain(fields: tuple[Any, ...]) -> list[Any]:
    """Return fields with plain containers."""
    return [
        dict(field) if isinstance(field, Mapping) else tuple(field) if number in (11, 12) else field
        for number, field in enumerate(fields)
    ]


def test_this_sdk_is_known() -> None:
    live, ended = recorded()
    assert {type(live), type(ended)} == _fields._KNOWN


@pytest.mark.parametrize("known", [True, False], ids=["fields", "properties"])
def test_a_span_is_read_as_its_properties_tell_it(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001  drawn
    if not known:
        monkeypatch.setattr(_fields, "_KNOWN", frozenset())
    links = [Link(CONTEXT, {"number": number}) for number in range(3)]
    attributes = {"text": "a", "list": (1, 2), "number": 3}
    live, ended = recorded(2, kind=SpanKind.CLIENT, attributes=attributes, links=links)
    assert plain(whole(ended)) == told(ended)
    assert plain(whole(live)) == told(live)
    assert whole(ended)[13:16] == (1, 1, 1)


def test_a_span_that_starts_is_read_as_its_properties_tell_it() -> None:
    live, _ = recorded(attributes={"text": "a"})
    for read in (started, _fields._started_by_properties):
        context, parent, attributes = read(live)
        assert (context, parent, dict(attributes)) == (live.context, live.parent, {"text": "a"})


class Masked(ReadableSpan):
    """Says something else than it keeps."""

    @property
    def attributes(self) -> dict[str, str]:
        return {"text": "masked"}


def test_a_class_of_its_own_is_asked() -> None:
    assert dict(whole(Masked("name", CONTEXT, attributes={"text": "secret"}))[10]) == {"text": "masked"}


@pytest.mark.parametrize("attributes", [None, {"text": "a"}])
def test_a_span_that_was_made_by_hand_is_asked(attributes: dict[str, str] | None) -> None:
    fields = whole(ReadableSpan("name", CONTEXT, attributes=attributes))
    assert (dict(fields[10]), *map(tuple, fields[11:13])) == (attributes or {}, (), ())
    assert fields[6:8] == ("", "")  # no scope


@pytest.mark.parametrize(
    "attribute", ["_context", "_parent", "_name", "_attributes", "_events", "_status", "_resource"]
)
def test_an_sdk_that_keeps_something_elsewhere_is_not_known(attribute: str) -> None:
    live, _ = recorded()
    assert _fields._agree(live)
    setattr(live, f"{attribute}_moved", getattr(live, attribute))
    delattr(live, attribute)
    assert not _fields._agree(live)


def test_an_sdk_that_keeps_something_else_is_not_known() -> None:
    _, ended = recorded()
    moved: Any = SimpleNamespace(_dict={"other": 1}, dropped=0)
    ended._attributes = moved
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ended), "attributes", property(lambda _: {"text": "a"}))
        assert not _fields._agree(ended)


@pytest.mark.parametrize("limit", [None, 4, 2, 0])
def test_what_is_put_on_a_span_obeys_its_limit(limit: int | None) -> None:
    live = start(limit, {"one": 1, "two": 2})
    twin = start(limit, {"one": 1, "two": 2})
    put(live, "three", "3")
    twin.set_attribute("three", "3")
    assert dict(live.attributes or {}) == dict(twin.attributes or {})
    assert live.dropped_attributes == twin.dropped_attributes


def start(limit: int | None, attributes: dict[str, int]) -> Span:
    """Start a span under a limit of attributes."""
    limits = SpanLimits(max_span_attributes=SpanLimits.UNSET if limit is None else limit)
    tracer = TracerProvider(span_limits=limits, shutdown_on_exit=False).get_tracer("scope")
    span = tracer.start_span("name", attributes=attributes)
    assert isinstance(span, Span)
    return span


LOADED = """
import random
random.seed(1)
before = random.getstate()
from spangate._sdk import fields
assert len(fields._KNOWN) == 2
assert random.getstate() == before
"""


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0", "OTEL_SPAN_EVENT_COUNT_LIMIT": "0"},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1"},
        {"OTEL_TRACES_SAMPLER": "always_off"},
    ],
)
def test_the_probe_asks_neither_the_environment_nor_the_programs_random_numbers(setting: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADED], env={**os.environ, **setting}, check=False, capture_output=True
    )
    assert (run.returncode, run.stderr) == (0, b"")


OTHERWISE = """
import opentelemetry.sdk.trace as sdk
kept = sdk.ReadableSpan.attributes.fget
sdk.ReadableSpan.attributes = property(lambda span: {**kept(span), "told": 1})  # what is in the fields is not all
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from spangate import GateSpanProcessor
from spangate._hooks import Hooks
from spangate._sdk.fields import ARE_KNOWN
assert not ARE_KNOWN and GateSpanProcessor.on_start is Hooks.on_start and GateSpanProcessor.on_end is Hooks.on_end
memory = InMemorySpanExporter()
provider = sdk.TracerProvider()
provider.add_span_processor(GateSpanProcessor(memory))
tracer = provider.get_tracer("test")
with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    with tracer.start_as_current_span("tool", attributes={"gen_ai.operation.name": "execute_tool"}):
        pass
assert provider.force_flush()
print(*sorted(span.name for span in memory.get_finished_spans()))
"""


def test_with_an_sdk_that_keeps_spans_otherwise_every_span_takes_the_lock() -> None:
    run = subprocess.run([sys.executable, "-c", OTHERWISE], check=False, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "agent tool\n", "")
