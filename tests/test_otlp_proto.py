from __future__ import annotations

import base64
import io
import json
import struct
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped] # protobuf ships no stubs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from spangate._errors import RecordingError
from spangate._otlp import fast
from spangate._otlp import json as _otlp_json
from spangate._otlp.frames import framing_of
from spangate._otlp.proto import read_message, trace_ids
from tests.otlp import facts

IDS = {"traceId", "spanId", "parentSpanId"}


def real_spans() -> list[ReadableSpan]:
    """Let the SDK make spans with everything that a span can have."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "agent", "n": 3}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("lib", "1.2")
    upstream = SpanContext(0xA, 0xB, is_remote=True, trace_flags=TraceFlags(1))
    with tracer.start_as_current_span(
        "request", context=set_span_in_context(NonRecordingSpan(upstream)), kind=SpanKind.SERVER
    ):
        for kind in SpanKind:
            with tracer.start_as_current_span(
                f"inner {kind.name}",
                kind=kind,
                links=[Link(upstream, {"why": "batch"})],
                attributes={
                    "text": "ä\U0001f916\n\x00",
                    "empty": "",
                    "yes": True,
                    "zero": 0,
                    "least": -(1 << 63),
                    "half": 0.5,
                    "whole": 1.0,
                    "nan": float("nan"),
                    "inf": float("inf"),
                    "bytes": b"\x00\xff",
                    "list": ["a", "b"],
                    "none": [],
                },
            ) as span:
                span.add_event("event", {"n": (1, 2)}, timestamp=17)
        with tracer.start_as_current_span("failed") as span:
            span.set_status(Status(StatusCode.ERROR, "no"))
        with tracer.start_as_current_span("fine") as span:
            span.set_status(StatusCode.OK)
    return list(memory.get_finished_spans())


def otlp_json_of(message: Any) -> bytes:
    """Turn a message into OTLP/JSON: protobuf's own JSON, but ids in hex and enums as numbers."""

    def hexed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: hexed(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [hexed(item) for item in value]
        return base64.b64decode(value).hex() if key in IDS else value

    return json.dumps(hexed(MessageToDict(message, use_integers_for_enums=True))).encode()


def test_what_the_sdk_encodes_is_read_as_the_sdk_had_it() -> None:
    real = real_spans()
    read = {span.span_id: span for span in read_message(encode_spans(real).SerializeToString())}
    assert len(read) == len(real)
    for span in real:
        record = read[span.context.span_id]
        assert record.trace_id == span.context.trace_id
        assert record.parent_id == (span.parent.span_id if span.parent else None)
        assert record.parent_remote == bool(span.parent and span.parent.is_remote)
        assert (record.name, record.kind, record.status) == (span.name, span.kind.name, span.status.status_code.name)
        assert record.status_description == (span.status.description or "")
        assert (record.start_ns, record.end_ns) == (span.start_time, span.end_time)
        assert repr(record.attributes) == repr(dict(span.attributes or {}))
        assert [(event.name, event.time_ns, event.attributes) for event in record.events] == [
            (event.name, event.timestamp, dict(event.attributes or {})) for event in span.events
        ]
        assert [(link.trace_id, link.span_id, link.attributes) for link in record.links] == [
            (link.context.trace_id, link.context.span_id, dict(link.attributes or {})) for link in span.links
        ]
        assert record.resource == dict(span.resource.attributes)
        assert (record.scope, record.scope_version) == ("lib", "1.2")


def test_protobuf_and_both_readers_of_json_agree() -> None:
    message = encode_spans(real_spans())
    expected = facts(read_message(message.SerializeToString()))
    line = otlp_json_of(message)
    assert facts(_otlp_json.read_line(line)) == expected
    assert facts(fast.read_line(line)) == expected


def test_trace_ids_are_those_of_the_spans() -> None:
    real = real_spans()
    assert trace_ids(encode_spans(real).SerializeToString()) == {0xA}


def message_of(**fields: Any) -> bytes:
    whole = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "start_time_unix_nano": 1, "end_time_unix_nano": 2}
    data = TracesData()
    data.resource_spans.add().scope_spans.add().spans.append(ProtoSpan(**{**whole, **fields}))
    return bytes(data.SerializeToString())


def test_what_protobuf_leaves_out_has_its_default() -> None:
    (span,) = read_message(message_of(end_time_unix_nano=0, parent_span_id=bytes(8)))
    assert (span.kind, span.status, span.parent_id, span.is_open) == ("INTERNAL", "UNSET", None, True)


def test_null_is_not_zero() -> None:
    attributes = [{"key": "null"}, {"key": "void", "value": {}}, {"key": "zero", "value": {"int_value": 0}}]
    (span,) = read_message(message_of(attributes=attributes))
    assert span.attributes == {"null": None, "void": None, "zero": 0}


def test_key_value_lists_are_maps() -> None:
    inner = {"kvlist_value": {"values": [{"key": "k", "value": {"array_value": {"values": [{"bool_value": True}]}}}]}}
    (span,) = read_message(message_of(attributes=[{"key": "map", "value": inner}]))
    assert span.attributes == {"map": {"k": (True,)}}


FIRST = "resource_spans[0].scope_spans[0].spans[0]"


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (message_of(trace_id=b"short"), f"{FIRST}.trace_id: an id of 16 bytes is wanted, not 5"),
        (message_of(trace_id=b""), f"{FIRST}.trace_id: an id of 16 bytes is wanted, not 0"),
        (message_of(span_id=bytes(8)), f"{FIRST}.span_id: an id of 8 bytes is wanted, not zeros only"),
        (message_of(parent_span_id=b"p"), f"{FIRST}.parent_span_id: an id of 8 bytes is wanted, not 1"),
        (message_of(kind=9), f"{FIRST}.kind: 0 to 5 is wanted, not 9"),
        (message_of(status={"code": 7}), f"{FIRST}.status.code: 0 to 2 is wanted, not 7"),
        (message_of(links=[{}]), f"{FIRST}.links[0].trace_id: an id of 16 bytes is wanted, not 0"),
        (b"\x0a\xff", "no OTLP trace data in protobuf"),
    ],
)
def test_a_bad_message_is_an_error_that_says_where_and_what(message: bytes, what: str) -> None:
    with pytest.raises(RecordingError) as caught:
        read_message(message)
    assert str(caught.value) == what


def varint(number: int) -> bytes:
    digits = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([digit | 0x80 for digit in digits[:-1]] + digits[-1:])


# The length of the third puts a byte where the four-byte form would have the tag of its first field.
MESSAGES = [message_of(name=name) for name in ("a", "b" * 200, "c" * 1250, "d" * 70_000)]


@pytest.mark.parametrize(
    "messages", [[first, *MESSAGES] for first in MESSAGES], ids=["short", "long", "longer", "longest"]
)
@pytest.mark.parametrize(
    "frame",
    [
        lambda message: message,
        lambda message: varint(len(message)) + message,
        lambda message: struct.pack(">I", len(message)) + message,
    ],
    ids=["alone", "varint", "four bytes"],
)
def test_framing_is_told_by_the_first_bytes(frame: Any, messages: list[bytes]) -> None:
    file = b"".join(frame(message) for message in messages)
    frames = framing_of(file[:16])
    assert frames is not None
    assert list(frames(io.BytesIO(file))) == messages
    with pytest.raises(RecordingError, match=r"cut short: \d+ bytes are announced, \d+ are left"):
        list(frames(io.BytesIO(file[:-1])))


@pytest.mark.parametrize("head", [b"", b"\x00", b"PK\x03\x04 and so on", b"\x89PNG\r\n\x1a\n", b"\xff" * 16])
def test_other_files_have_no_framing(head: bytes) -> None:
    assert framing_of(head) is None


@pytest.mark.parametrize("file", [b"\x0a", b"\x0a\x80", b"\x1a\x0a" + bytes(25) + b"\x80", b"\0\0\0\1\x0a\0\0"])
def test_a_length_may_be_cut_too(file: bytes) -> None:
    frames = framing_of(file)
    assert frames is not None
    with pytest.raises(RecordingError, match="cut short: the length of a message is not complete"):
        list(frames(io.BytesIO(file)))


def test_a_message_with_another_field_is_no_trace_data() -> None:
    frames = framing_of(b"\x0a\x00")
    assert frames is not None
    with pytest.raises(RecordingError, match="a field that is not resource_spans"):
        list(frames(io.BytesIO(b"\x0a\x00\x12\x00")))
