"""OTLP for tests: lines built from a whole span by changing single fields, and records as comparable facts."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from spangate._records import Span

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"
SPAN = "051581bf3cb55c13"
PARENT = "5fb397be34d26b51"

WHOLE: Mapping[str, Any] = {
    "traceId": TRACE,
    "spanId": SPAN,
    "parentSpanId": PARENT,
    "flags": 0x100,
    "name": "chat",
    "kind": 3,
    "startTimeUnixNano": "1796028127771056896",
    "endTimeUnixNano": "1796028127803536896",
    "attributes": [{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "120"}}],
    "events": [{"timeUnixNano": "1796028127771056900", "name": "first token", "attributes": []}],
    "links": [{"traceId": TRACE, "spanId": PARENT, "attributes": []}],
    "status": {"code": 1},
}
GONE = object()
"""The value of a field that is to be left out."""


def otlp_span(**fields: Any) -> dict[str, Any]:
    """Make a span object; ``fields`` replace those of the whole one."""
    made = {**copy.deepcopy(dict(WHOLE)), **fields}
    return {name: value for name, value in made.items() if value is not GONE}


def otlp_document(*spans: Any, **beside: Any) -> dict[str, Any]:
    """Make a ``TracesData`` object of one resource and scope."""
    scope = {"scope": {"name": "lib", "version": "1.2"}, "spans": list(spans)}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "agent"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}], **beside}


def otlp_line(*spans: Any) -> bytes:
    """Make one line of OTLP/JSON."""
    return json.dumps(otlp_document(*spans)).encode() + b"\n"


def with_value(value: Any) -> dict[str, Any]:
    """Make a span object with one attribute ``k`` of this ``AnyValue``."""
    return otlp_span(attributes=[{"key": "k", "value": value}])


def facts(spans: Iterable[Span]) -> list[dict[str, str]]:
    """Turn records into what can be compared: NaN equals NaN, and True is not 1."""
    return [{field.name: repr(getattr(span, field.name)) for field in dataclasses.fields(span)} for span in spans]
