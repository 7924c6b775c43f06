"""Ordinary OTLP/JSON lines to span records, several times as fast as :mod:`spangate._otlp.json`.

Needs ``msgspec``. Whatever is not plainly right, to msgspec or here, is left to the strict reader, which alone knows
every rule and every message; so this one is sooner, never different.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from spangate._errors import RecordingError
from spangate._otlp import shapes
from spangate._otlp.fields import UINT64, whole
from spangate._otlp.json import KIND_PREFIX, KINDS, REMOTE_FLAGS, SPAN_ID_BYTES, STATUS_PREFIX, STATUSES, TRACE_ID_BYTES
from spangate._otlp.json import read_line as read_line_strictly
from spangate._otlp.value import read_value
from spangate._records import Event, Link, Span, SpanStatus

_KIND_OF: Final[Mapping[int | str, str]] = {
    **dict(enumerate(KINDS)),
    **{KIND_PREFIX + kind: kind for kind in KINDS},
    0: "INTERNAL",
    KIND_PREFIX + KINDS[0]: "INTERNAL",
}
_STATUS_OF: Final[Mapping[int | str, SpanStatus]] = {
    **dict(enumerate(STATUSES)),
    **{STATUS_PREFIX + status: status for status in STATUSES},
}
_INT64_DIGITS: Final = 18
_UINT64_DIGITS: Final = 19
"""Decimal text of this length always fits."""

_LEAST_OF_19_DIGITS: Final = 10**18
_KNOWN_IDS: Final = 1024
_SAMPLED: Final = True
"""A span that was exported was sampled, as far as OTLP tells."""

_VALUE_KEYS: Final = tuple(field.encode_name for field in msgspec.structs.fields(shapes.Value))
_decode: Final = msgspec.json.Decoder(shapes.TracesData).decode
_astuple: Final = msgspec.structs.astuple
_from_hex: Final = bytes.fromhex
_from_bytes: Final = int.from_bytes


def read_line(line: bytes) -> list[Span]:
    """Read one line: a ``TracesData`` or ``ExportTraceServiceRequest`` object.

    Raises:
        RecordingError: it is not one.
    """
    try:
        return _spans(_decode(line))
    except (ValueError, KeyError, RecursionError, RecordingError):
        return read_line_strictly(line)


def _spans(data: shapes.TracesData) -> list[Span]:
    spans: list[Span] = []
    for resource_spans in data.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope
            spans += [_span(span, scope.name, scope.version, resource) for span in scope_spans.spans]
    return spans


def _span(span: shapes.Span, scope: str, version: str, resource: Mapping[str, Any]) -> Span:
    parent = span.parent_span_id
    status = span.status
    return Span(
        _known_id(span.trace_id, TRACE_ID_BYTES),
        _id(span.span_id, SPAN_ID_BYTES),
        _known_id(parent, SPAN_ID_BYTES) if parent else None,
        span.name,
        _time(span.start_time_unix_nano),
        _time(span.end_time_unix_nano) or None,
        _KIND_OF[span.kind],
        scope,
        _STATUS_OF[status.code] if status else "UNSET",
        status.message if status else "",
        _attributes(span.attributes),
        tuple([_event(event) for event in span.events]) if span.events else (),
        tuple([_link(link) for link in span.links]) if span.links else (),
        resource,
        parent != "" and span.flags & REMOTE_FLAGS == REMOTE_FLAGS,
        _SAMPLED,
        _SAMPLED,
        span.dropped_attributes_count,
        span.dropped_events_count,
        span.dropped_links_count,
        version,
    )


def _event(event: shapes.Event) -> Event:
    return Event(event.name, _attributes(event.attributes), _time(event.time_unix_nano))


def _link(link: shapes.Link) -> Link:
    trace_id, span_id = _known_id(link.trace_id, TRACE_ID_BYTES), _known_id(link.span_id, SPAN_ID_BYTES)
    return Link(trace_id, span_id, _attributes(link.attributes))


def _id(text: str, size: int) -> int:
    found = _from_hex(text)
    number = _from_bytes(found, "big")
    if len(found) != size or len(text) != 2 * size or not number:
        raise ValueError(text)
    return number


_known_id: Final = lru_cache(_KNOWN_IDS)(_id)
"""For ids that are met again and again: those of traces and parents."""


def _time(text: str) -> int:
    if len(text) == _UINT64_DIGITS and text.isascii():
        number = int(text)
        if number >= _LEAST_OF_19_DIGITS:  # so there were digits only, not 1_000 or +1
            return number
    return whole(text, UINT64)


def _attributes(pairs: list[shapes.Pair]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        if (
            value.array_value is None
            and value.double_value is None
            and value.bool_value is None
            and value.kvlist_value is None
            and value.bytes_value is None
        ):
            number = value.int_value
            if number is None:
                found[pair.key] = value.string_value
                continue
            if value.string_value is None and type(number) is str and _is_short(number):
                found[pair.key] = int(number)
                continue
        found[pair.key] = _other(value)
    return found


def _is_short(number: str) -> bool:
    return len(number) <= _INT64_DIGITS and number.isdigit() and number.isascii()


def _other(value: shapes.Value) -> Any:
    """Read a value of any kind; the rare kinds, and more than one value, where all the rules are known."""
    fields = _astuple(value)
    if fields.count(None) == len(fields) - 1:
        if value.array_value is not None:
            return tuple([_item(item) for item in value.array_value.values])
        for scalar in (value.string_value, value.double_value, value.bool_value):
            if scalar is not None:
                return scalar
    return read_value(dict(zip(_VALUE_KEYS, fields, strict=True)))


def _item(value: shapes.Value) -> Any:
    if value.array_value is not None or value.kvlist_value is not None:
        raise ValueError("nested")  # how deep is a question for the strict reader
    return _other(value)
