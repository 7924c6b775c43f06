"""Span records to OTLP/JSON. Written in ASCII, so that no text can spoil a file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from spangate._otlp.json import KINDS, STATUSES
from spangate._otlp.value import write_attributes
from spangate._records import Event, Link, Span

_REMOTE_KNOWN, _REMOTE = 0x100, 0x200


def write_line(spans: Iterable[Span]) -> str:
    """Write ``spans`` as one ``TracesData`` object on one line. Their order is kept; an open span has no end time."""
    groups = itertools.groupby(spans, key=lambda span: (id(span.resource), span.scope, span.scope_version))
    found = [_resource_spans(list(members)) for _, members in groups]
    return dump({"resourceSpans": found}) + "\n"


def dump(value: Any) -> str:
    """Write JSON on one line."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _resource_spans(spans: list[Span]) -> dict[str, Any]:
    scope = {"scope": write_scope(spans[0]), "spans": [write_span(span) for span in spans]}
    return {"resource": {"attributes": write_attributes(spans[0].resource)}, "scopeSpans": [scope]}


def write_scope(span: Span) -> dict[str, Any]:
    """Write the instrumentation scope of ``span``."""
    return {"name": span.scope, **({"version": span.scope_version} if span.scope_version else {})}


def write_span(span: Span) -> dict[str, Any]:
    """Write one span object; what has its default value is left out."""
    written: dict[str, Any] = {"traceId": span.hex_trace_id, "spanId": span.hex_id}
    if span.parent_id is not None:
        written["parentSpanId"] = format(span.parent_id, "016x")
    written["flags"] = _REMOTE_KNOWN | (_REMOTE if span.parent_remote else 0)
    written |= {"name": span.name, "kind": KINDS.index(span.kind), "startTimeUnixNano": str(span.start_ns)}
    if span.end_ns is not None:
        written["endTimeUnixNano"] = str(span.end_ns)
    status = {"message": span.status_description, "code": STATUSES.index(span.status)}
    optional = {
        "attributes": write_attributes(span.attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [_event(event) for event in span.events],
        "droppedEventsCount": span.dropped_events,
        "links": [_link(link) for link in span.links],
        "droppedLinksCount": span.dropped_links,
        "status": {key: value for key, value in status.items() if value},
    }
    return written | {key: value for key, value in optional.items() if value}


def _event(event: Event) -> dict[str, Any]:
    return {
        "timeUnixNano": str(event.time_ns),
        "name": event.name,
        "attributes": write_attributes(event.attributes),
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "traceId": format(link.trace_id, "032x"),
        "spanId": format(link.span_id, "016x"),
        "attributes": write_attributes(link.attributes),
    }
