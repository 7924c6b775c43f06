"""OTLP protobuf messages to span records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # protobuf ships no stubs
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from spangate._errors import RecordingError
from spangate._otlp.fields import each
from spangate._otlp.json import KINDS, REMOTE_FLAGS, SPAN_ID_BYTES, STATUSES, TRACE_ID_BYTES
from spangate._records import Event, Link, Span, SpanStatus

_NO_ID: Final = bytes(SPAN_ID_BYTES)
_SCALARS: Final = {"string_value", "bool_value", "int_value", "double_value", "bytes_value"}


def read_message(message: bytes) -> list[Span]:
    """Read a ``TracesData`` or ``ExportTraceServiceRequest`` message, which look the same.

    Raises:
        RecordingError: it is not one.
    """
    spans: list[Span] = []
    each(_parse(message).resource_spans, "resource_spans", lambda found: _read_resource_spans(found, spans))
    return spans


def trace_ids(message: bytes) -> set[int]:
    """Return the ids of the traces that a message holds spans of."""
    found: set[int] = set()
    for resource_spans in _parse(message).resource_spans:
        for scope_spans in resource_spans.scope_spans:
            found.update(int.from_bytes(span.trace_id, "big") for span in scope_spans.spans)
    return found


def _parse(message: bytes) -> trace_pb2.TracesData:
    parsed = trace_pb2.TracesData()
    try:
        parsed.ParseFromString(message)
    except DecodeError:
        raise RecordingError("no OTLP trace data in protobuf") from None
    return parsed


def _read_resource_spans(found: trace_pb2.ResourceSpans, spans: list[Span]) -> None:
    resource = read_attributes(found.resource.attributes)
    each(found.scope_spans, "scope_spans", lambda part: _read_scope_spans(part, resource, spans))


def _read_scope_spans(part: trace_pb2.ScopeSpans, resource: Mapping[str, Any], spans: list[Span]) -> None:
    name, version = part.scope.name, part.scope.version
    spans.extend(each(part.spans, "spans", lambda span: _read_span(span, name, version, resource)))


def _read_span(found: trace_pb2.Span, scope: str, version: str, resource: Mapping[str, Any]) -> Span:
    has_parent = found.parent_span_id not in {b"", _NO_ID}
    return Span(
        trace_id=_id(found.trace_id, "trace_id", TRACE_ID_BYTES),
        span_id=_id(found.span_id, "span_id", SPAN_ID_BYTES),
        parent_id=_id(found.parent_span_id, "parent_span_id", SPAN_ID_BYTES) if has_parent else None,
        name=found.name,
        start_ns=found.start_time_unix_nano,
        end_ns=found.end_time_unix_nano or None,
        kind=_name(found.kind or 1, "kind", KINDS),
        scope=scope,
        status=cast("SpanStatus", _name(found.status.code, "status.code", STATUSES)),
        status_description=found.status.message,
        attributes=read_attributes(found.attributes),
        events=tuple(
            Event(event.name, read_attributes(event.attributes), event.time_unix_nano) for event in found.events
        ),
        links=tuple(each(found.links, "links", _read_link)),
        resource=resource,
        parent_remote=has_parent and found.flags & REMOTE_FLAGS == REMOTE_FLAGS,
        dropped_attributes=found.dropped_attributes_count,
        dropped_events=found.dropped_events_count,
        dropped_links=found.dropped_links_count,
        scope_version=version,
    )


def _read_event(found: trace_pb2.Span.Event) -> Event:
    return Event(found.name, read_attributes(found.attributes), found.time_unix_nano)


def _read_link(found: trace_pb2.Span.Link) -> Link:
    trace_id, span_id = _id(found.trace_id, "trace_id", TRACE_ID_BYTES), _id(found.span_id, "span_id", SPAN_ID_BYTES)
    return Link(trace_id, span_id, read_attributes(found.attributes))


def _id(found: bytes, field: str, size: int) -> int:
    number = int.from_bytes(found, "big")
    if len(found) != size or not number:
        what = "zeros only" if len(found) == size else f"{len(found)}"
        raise RecordingError(f"an id of {size} bytes is wanted, not {what}", field=field)
    return number


def _name(number: int, field: str, names: tuple[str, ...]) -> str:
    if number not in range(len(names)):
        raise RecordingError(f"0 to {len(names) - 1} is wanted, not {number}", field=field)
    return names[number]


def read_attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Read attributes; of a value that is none of OTLP's kinds nothing."""
    return {pair.key: read_value(pair.value) for pair in pairs}


def read_value(value: AnyValue) -> Any:
    """Read a value, None where there is none."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(read_value(item) for item in value.array_value.values)
    if kind == "kvlist_value":
        return read_attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind in _SCALARS else None
