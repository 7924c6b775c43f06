"""SDK spans as the bytes of an OTLP export request: those that the SDK's own encoder writes, in a sixth of the time.

Numbers of fields: https://github.com/open-telemetry/opentelemetry-proto, trace.proto and trace_service.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceState

from spangate._otlp.wire import attributes, block, count, text, time, varint

_KINDS = (SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER)
_KIND_FIELDS = {kind: bytes((0x30, number)) for number, kind in enumerate(_KINDS, 1)}
_CODE_FIELDS = {StatusCode.UNSET: b"", StatusCode.OK: b"\x18\x01", StatusCode.ERROR: b"\x18\x02"}
# A look-up in an enum's class costs as much as a call, and so does one in a dict by an enum's member.
_UNSET, _INTERNAL, _CLIENT = StatusCode.UNSET, SpanKind.INTERNAL, SpanKind.CLIENT
_INTERNAL_FIELD, _CLIENT_FIELD = _KIND_FIELDS[_INTERNAL], _KIND_FIELDS[_CLIENT]
_STRIDE = 32
"""So many spans are written without a rest: about half a millisecond of work."""


class Encoded(NamedTuple):
    """An ``ExportTraceServiceRequest``, and the spans that are not in it: something in them is nothing OTLP has."""

    content: bytes
    odd: Sequence[ReadableSpan]


def encode(spans: Iterable[ReadableSpan], rest: Callable[[], None]) -> Encoded:
    """Write spans as a request. ``rest`` is called after every few of them."""
    groups = _Groups()
    odd: list[ReadableSpan] = []
    for number, span in enumerate(spans, 1):
        try:
            content = encode_span(span)
            groups.of(span).extend((b"\x12", varint(len(content)), content))
        except Exception:  # noqa: BLE001  of many kinds: whatever it is, the span is not written here
            odd.append(span)
        if number % _STRIDE == 0:
            rest()
    return Encoded(groups.written(), odd)


class _Group(NamedTuple):
    """What some spans share, written: a resource or a scope, the address of its schema, and what comes between."""

    head: bytes
    tail: bytes
    pieces: list[bytes]

    def written(self) -> bytes:
        return b"".join((self.head, *self.pieces, self.tail))


class _Groups:
    """Written spans by their resources and scopes, in the order of their first ones."""

    def __init__(self) -> None:
        self._resources: dict[Resource, tuple[_Group, dict[InstrumentationScope | None, _Group]]] = {}
        self._places: dict[tuple[int, int], list[bytes]] = {}

    def of(self, span: ReadableSpan) -> list[bytes]:
        """Return where the pieces of a span belong. By identity first: a hash of what it shares takes long."""
        resource, scope = span.resource, span.instrumentation_scope or None
        place = self._places.get((id(resource), id(scope)))
        if place is None:
            if resource not in self._resources:
                self._resources[resource] = _resource(resource), {}
            _, scopes = self._resources[resource]
            if scope not in scopes:
                scopes[scope] = _scope(scope)
            place = self._places[id(resource), id(scope)] = scopes[scope].pieces
        return place

    def written(self) -> bytes:
        """Return all of it as the content of a request."""
        for group, scopes in self._resources.values():
            group.pieces.extend(block(b"\x12", scope.written()) for scope in scopes.values())
        return b"".join([block(b"\x0a", group.written()) for group, scopes in self._resources.values() if scopes])


def _resource(resource: Resource) -> _Group:
    head = block(b"\x0a", b"".join(attributes(b"\x0a", resource.attributes)))
    return _Group(head, text(b"\x1a", resource.schema_url), [])


def _scope(scope: InstrumentationScope | None) -> _Group:
    if scope is None:
        return _Group(b"\x0a\x00", b"", [])
    names = text(b"\x0a", scope.name), text(b"\x12", scope.version)
    head = block(b"\x0a", b"".join((*names, *attributes(b"\x1a", scope.attributes))))
    return _Group(head, text(b"\x1a", scope.schema_url), [])


def encode_span(span: ReadableSpan) -> bytes:
    """Write the content of one ``Span``.

    Raises:
        Exception: of many kinds, where something in it is nothing that OTLP has.
    """
    context: Any = span.get_span_context()
    parent = span.parent
    kind = span.kind
    events, links = span.events, span.links
    return b"".join(
        (
            b"\x0a\x10", context.trace_id.to_bytes(16, "big"), b"\x12\x08", context.span_id.to_bytes(8, "big"),
            _trace_state(context.trace_state),
            b"\x22\x08" + parent.span_id.to_bytes(8, "big") if parent else b"",
            text(b"\x2a", span.name),
            _INTERNAL_FIELD if kind is _INTERNAL else _CLIENT_FIELD if kind is _CLIENT else _KIND_FIELDS[kind],
            time(b"\x39", span.start_time), time(b"\x41", span.end_time),
            *attributes(b"\x4a", span.attributes), count(b"\x50", span.dropped_attributes),
            *([block(b"\x5a", _event(event)) for event in events] if events else ()),
            count(b"\x60", span.dropped_events),
            *([block(b"\x6a", _link(link)) for link in links] if links else ()),
            count(b"\x70", span.dropped_links),
            _status(span.status),
            b"\x85\x01" + _flags(parent),
        )
    )  # fmt: skip


def _trace_state(state: TraceState | None) -> bytes:
    return text(b"\x1a", ",".join([f"{key}={value}" for key, value in state.items()])) if state else b""


def _status(status: Status | None) -> bytes:
    if status is None:
        return b""
    if status.status_code is _UNSET and not status.description:
        return b"\x7a\x00"
    return block(b"\x7a", text(b"\x12", status.description) + _CODE_FIELDS[status.status_code])


def _flags(context: SpanContext | None) -> bytes:
    """Say whether a context came from another process. The lower bits stay empty, as the SDK leaves them."""
    return b"\x00\x03\x00\x00" if context and context.is_remote else b"\x00\x01\x00\x00"


def _event(event: Event) -> bytes:
    head = time(b"\x09", event.timestamp), text(b"\x12", event.name)
    dropped = count(b"\x20", event.dropped_attributes)
    return b"".join((*head, *attributes(b"\x1a", event.attributes), dropped))


def _link(link: Link) -> bytes:
    context: Any = link.context
    head = b"\x0a\x10", context.trace_id.to_bytes(16, "big"), b"\x12\x08", context.span_id.to_bytes(8, "big")
    dropped = count(b"\x28", link.dropped_attributes)
    return b"".join((*head, *attributes(b"\x22", link.attributes), dropped, b"\x35", _flags(context)))
