"""What msgspec decodes OTLP/JSON into: lean objects with the fields that are read.

Types are as narrow as ordinary lines allow: what does not fit (a null, a number where text is usual) is an error here
and a case for the strict reader.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class Lean(msgspec.Struct, rename="camel", gc=False):
    """A JSON object with camel-case names, which the garbage collector need not follow."""


class Value(Lean):
    """An ``AnyValue``: at most one field is not None."""

    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | None = None
    array_value: Array | None = None
    kvlist_value: Any = None
    bytes_value: str | None = None


class Array(Lean):
    """An ``ArrayValue``."""

    values: list[Value] = []


class Pair(Lean):
    """A ``KeyValue``."""

    key: str
    value: Value


class Event(Lean):
    """A span event."""

    time_unix_nano: str
    name: str = ""
    attributes: list[Pair] = []


class Link(Lean):
    """A span link."""

    trace_id: str
    span_id: str
    attributes: list[Pair] = []


class Status(Lean):
    """A span's status."""

    code: int | str = 0
    message: str = ""


class Span(Lean):
    """A span."""

    trace_id: str
    span_id: str
    start_time_unix_nano: str
    end_time_unix_nano: str
    parent_span_id: str = ""
    flags: Count = 0
    name: str = ""
    kind: int | str = 0
    attributes: list[Pair] = []
    events: list[Event] = []
    links: list[Link] = []
    status: Status | None = None
    dropped_attributes_count: Count = 0
    dropped_events_count: Count = 0
    dropped_links_count: Count = 0


class Scope(Lean):
    """An instrumentation scope."""

    name: str = ""
    version: str = ""


class ScopeSpans(Lean):
    """The spans of a scope."""

    spans: list[Span]
    scope: Scope


class Resource(Lean):
    """A resource."""

    attributes: list[Pair] = []


class ResourceSpans(Lean):
    """The spans of a resource."""

    scope_spans: list[ScopeSpans]
    resource: Resource
    instrumentation_library_spans: None = None


class TracesData(Lean):
    """A whole line."""

    resource_spans: list[ResourceSpans]
