"""OTLP/JSON to span records, strictly: every way in which a line is not OTLP is an error that says where.

What the protocol may grow by (fields that are not known, objects of other signals) is passed over. Written with the
standard library alone; :mod:`spangate._otlp.fast` reads what is ordinary sooner, with equal results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from spangate._errors import RecordingError
from spangate._otlp.fields import (
    UINT32,
    UINT64,
    a_list,
    an_object,
    each,
    id_at,
    kind_of,
    name_at,
    object_at,
    text_at,
    whole_at,
)
from spangate._otlp.value import read_attributes
from spangate._records import Event, Link, Span, SpanStatus

KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES: Final = ("UNSET", "OK", "ERROR")
KIND_PREFIX: Final = "SPAN_KIND_"
STATUS_PREFIX: Final = "STATUS_CODE_"
REMOTE_FLAGS: Final = 0x300
"""Two bits of a span's flags: whether the next is known at all, and whether the parent is remote."""

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
_NO_PARENT: Final = (None, "", "0" * 2 * SPAN_ID_BYTES)
_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_OTHER_SIGNALS: Final = ("resourceLogs", "resourceMetrics", "resourceProfiles")


def parse(line: bytes) -> Any:
    """Parse one JSON value. Lone surrogates are taken: half an emoji in a prompt is evidence, not a fault.

    Raises:
        RecordingError: it is not JSON.
    """
    try:
        return json.loads(_decode(line).rstrip())
    except (ValueError, RecursionError) as error:
        raise RecordingError(_fault(error)) from None


def parse_documents(data: bytes) -> Iterator[tuple[int, Any]]:
    """Parse JSON values that take any number of lines each, with the number of the line that each begins in.

    Raises:
        RecordingError: what follows is not JSON.
    """
    text = _decode(data)
    start, line = _skip_blanks(text, 0), 1 + text.count("\n", 0, _skip_blanks(text, 0))
    while start < len(text):
        try:
            document, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise RecordingError(_fault(error), place=f"line {error.lineno}") from None
        except (ValueError, RecursionError) as error:
            raise RecordingError(_fault(error), place=f"line {line}") from None
        yield line, document
        end = _skip_blanks(text, end)
        start, line = end, line + text.count("\n", start, end)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise RecordingError(f"not UTF-8 at byte {error.start + 1}") from None


def _fault(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON at character {error.colno}: {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError) else "not JSON: a number of thousands of digits"


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def read_line(line: bytes) -> list[Span]:
    """Read one line: a ``TracesData`` or ``ExportTraceServiceRequest`` object."""
    return read_document(parse(line))


def read_document(document: Any) -> list[Span]:
    """Read a parsed ``TracesData`` or ``ExportTraceServiceRequest`` object into spans, in the order they stand in.

    Raises:
        RecordingError: it is not one.
    """
    found = an_object(document)
    if "resourceSpans" not in found and found and not any(signal in found for signal in _OTHER_SIGNALS):
        raise RecordingError(f"no OTLP trace data: resourceSpans is wanted, {_hint(found)}")
    spans: list[Span] = []
    each(a_list(found, "resourceSpans"), "resourceSpans", lambda item: _read_resource_spans(item, spans))
    return spans


def _hint(found: Mapping[str, Any]) -> str:
    if "resource_spans" in found:
        return "not resource_spans: OTLP/JSON writes its field names in lowerCamelCase"
    return f"here is {kind_of(', '.join(found))}"


def _read_resource_spans(item: Any, spans: list[Span]) -> None:
    holder = an_object(item)
    if holder.get("instrumentationLibrarySpans") is not None:
        raise RecordingError("instrumentationLibrarySpans is of OTLP before 0.15: write it again as scopeSpans")
    resource = object_at(holder, "resource", read_attributes)
    each(a_list(holder, "scopeSpans"), "scopeSpans", lambda part: _read_scope_spans(part, resource, spans))


def _read_scope_spans(part: Any, resource: Mapping[str, Any], spans: list[Span]) -> None:
    holder = an_object(part)
    scope, version = read_scope(holder)
    spans.extend(each(a_list(holder, "spans"), "spans", lambda span: read_span(span, scope, version, resource)))


def read_scope(holder: Mapping[str, Any]) -> tuple[str, str]:
    """Read name and version of the instrumentation scope under ``scope``."""
    return object_at(holder, "scope", lambda scope: (text_at(scope, "name"), text_at(scope, "version")))


def read_span(span: Any, scope: str, version: str, resource: Mapping[str, Any]) -> Span:
    """Read one span object. A span without an end time is open."""
    found = an_object(span)
    status, description = object_at(found, "status", _read_status)
    kind = name_at(found, "kind", KIND_PREFIX, KINDS)
    flags = whole_at(found, "flags", UINT32)
    has_parent = found.get("parentSpanId") not in _NO_PARENT
    if found.get("startTimeUnixNano") is None:
        raise RecordingError("a start time is wanted, which is missing", field="startTimeUnixNano")
    return Span(
        trace_id=id_at(found, "traceId", TRACE_ID_BYTES),
        span_id=id_at(found, "spanId", SPAN_ID_BYTES),
        parent_id=id_at(found, "parentSpanId", SPAN_ID_BYTES) if has_parent else None,
        name=text_at(found, "name"),
        start_ns=whole_at(found, "startTimeUnixNano", UINT64),
        end_ns=whole_at(found, "endTimeUnixNano", UINT64) or None,
        kind="INTERNAL" if kind == "UNSPECIFIED" else kind,
        scope=scope,
        status=status,
        status_description=description,
        attributes=read_attributes(found),
        events=tuple(each(a_list(found, "events"), "events", _read_event)),
        links=tuple(each(a_list(found, "links"), "links", _read_link)),
        resource=resource,
        parent_remote=has_parent and flags & REMOTE_FLAGS == REMOTE_FLAGS,
        dropped_attributes=whole_at(found, "droppedAttributesCount", UINT32),
        dropped_events=whole_at(found, "droppedEventsCount", UINT32),
        dropped_links=whole_at(found, "droppedLinksCount", UINT32),
        scope_version=version,
    )


def _read_status(status: Mapping[str, Any]) -> tuple[SpanStatus, str]:
    code = name_at(status, "code", STATUS_PREFIX, STATUSES)
    return cast("SpanStatus", code), text_at(status, "message")


def _read_event(event: Any) -> Event:
    found = an_object(event)
    return Event(text_at(found, "name"), read_attributes(found), whole_at(found, "timeUnixNano", UINT64))


def _read_link(link: Any) -> Link:
    found = an_object(link)
    trace_id, span_id = id_at(found, "traceId", TRACE_ID_BYTES), id_at(found, "spanId", SPAN_ID_BYTES)
    return Link(trace_id, span_id, read_attributes(found))
