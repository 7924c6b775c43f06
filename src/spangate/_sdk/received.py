"""OTLP protobuf to spans of the SDK: what programs sent, as if it had been recorded here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from spangate._otlp.json import REMOTE_FLAGS
from spangate._otlp.proto import read_attributes

_STRIDE: Final = 64
"""So many spans are made without a rest: about a millisecond of work."""
_KINDS: Final = (SpanKind.INTERNAL, *SpanKind)
"""By OTLP's number, which begins with "unspecified": to be taken as internal."""
_CODES: Final = (StatusCode.UNSET, StatusCode.OK, StatusCode.ERROR)
_SIMPLE: Final = (str, bool, int, float)
_MEMBER: Final = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
"""A member of a trace state: https://www.w3.org/TR/trace-context/#tracestate-header."""


def spans_of(message: bytes, rest: Callable[[], None]) -> Iterator[ReadableSpan]:
    """Yield the spans of an OTLP message that was checked. ``rest`` is called after every few.

    A span without an end, which nobody but a gate sends, has none here either.
    """
    parsed = trace_pb2.TracesData()
    parsed.ParseFromString(message)
    for resource_spans in parsed.resource_spans:
        resource = Resource(_plain(resource_spans.resource.attributes), resource_spans.schema_url)
        for scope_spans in resource_spans.scope_spans:
            scope = _scope(scope_spans)
            for number, found in enumerate(scope_spans.spans, 1):
                yield _span(found, resource, scope)
                if number % _STRIDE == 0:
                    rest()


def _scope(found: trace_pb2.ScopeSpans) -> InstrumentationScope:
    scope = found.scope
    return InstrumentationScope(scope.name, scope.version, found.schema_url, _plain(scope.attributes))


def _span(found: trace_pb2.Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    trace_id, parent_id = int.from_bytes(found.trace_id, "big"), int.from_bytes(found.parent_span_id, "big")
    state = _state(found.trace_state)
    flags = TraceFlags(found.flags & 0xFF | TraceFlags.SAMPLED)  # what is not sampled is not sent
    span = ReadableSpan(
        name=found.name,
        context=SpanContext(trace_id, int.from_bytes(found.span_id, "big"), False, flags, state),  # noqa: FBT003
        parent=SpanContext(trace_id, parent_id, _is_remote(found.flags), flags) if parent_id else None,
        resource=resource,
        attributes=read_attributes(found.attributes),
        events=[Event(event.name, read_attributes(event.attributes), event.time_unix_nano) for event in found.events],
        links=[_link(link) for link in found.links],
        kind=_KINDS[found.kind] if 0 <= found.kind < len(_KINDS) else SpanKind.INTERNAL,
        status=_status(found.status),
        start_time=found.start_time_unix_nano,
        end_time=found.end_time_unix_nano or None,
        instrumentation_scope=scope,
    )
    _note_losses(span, found)
    return span


def _is_remote(flags: int) -> bool:
    return flags & REMOTE_FLAGS == REMOTE_FLAGS


def _note_losses(span: ReadableSpan, found: trace_pb2.Span) -> None:
    """Have a span tell how much of it was dropped where it was recorded, as the SDK's own containers do."""
    if found.dropped_attributes_count:
        span._attributes = BoundedAttributes(None, span.attributes, immutable=False)  # noqa: SLF001
        span._attributes.dropped = found.dropped_attributes_count  # noqa: SLF001
    if found.dropped_events_count:
        span._events = _bounded(span.events, found.dropped_events_count)  # noqa: SLF001
    if found.dropped_links_count:
        span._links = _bounded(span.links, found.dropped_links_count)  # noqa: SLF001


def _bounded(kept: Iterable[Any], dropped: int) -> BoundedList[Any]:
    made: BoundedList[Any] = BoundedList(None)
    made.extend([*kept])
    made.dropped = dropped
    return made


def _link(found: trace_pb2.Span.Link) -> Link:
    flags = TraceFlags(found.flags & 0xFF)
    trace_id, span_id = int.from_bytes(found.trace_id, "big"), int.from_bytes(found.span_id, "big")
    context = SpanContext(trace_id, span_id, _is_remote(found.flags), flags, _state(found.trace_state))
    return Link(context, read_attributes(found.attributes))


def _state(header: str) -> TraceState | None:
    """Read a trace state; of one that is not well-formed nothing: the SDK would log each of its members."""
    members = [member.strip() for member in header.split(",")] if header else []
    return TraceState.from_header(members) if members and all(map(_MEMBER.fullmatch, members)) else None


def _status(found: trace_pb2.Status) -> Status:
    code = _CODES[found.code] if 0 <= found.code < len(_CODES) else StatusCode.UNSET
    return Status(code, found.message or None if code is StatusCode.ERROR else None)


def _plain(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Read attributes of which the SDK takes only plain values; others are written as JSON."""
    return {key: _as_plain(value) for key, value in read_attributes(pairs).items() if value is not None}


def _as_plain(value: Any) -> Any:
    if isinstance(value, str | bool | int | float | bytes):
        return value
    is_plain = isinstance(value, tuple) and len(set(map(type, value))) <= 1 and isinstance((*value, "")[0], _SIMPLE)
    return value if is_plain else json.dumps(value, default=str)
