"""OTLP/JSON turned into OTLP protobuf: some SDKs, and JavaScript in particular, have exporters that send nothing else.

JSON of OTLP is that of protobuf but for ids, which are hex digits instead of base64:
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import json_format  # type: ignore[import-untyped] # protobuf ships no stubs
from opentelemetry.proto.trace.v1 import trace_pb2

from spangate._receiver.bodies import BadBodyError

_IDS: Final = ("traceId", "spanId", "parentSpanId")


def from_json(body: bytes) -> bytes:
    """Return an ``ExportTraceServiceRequest`` as protobuf writes it.

    Raises:
        BadBodyError: it is none.
    """
    parsed = trace_pb2.TracesData()
    try:
        data = json.loads(body)
        for holder in _holders(data):
            for key in _IDS:
                if key in holder:
                    holder[key] = base64.b64encode(bytes.fromhex(holder[key])).decode()
        json_format.ParseDict(data, parsed, ignore_unknown_fields=True)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError, json_format.ParseError):
        raise BadBodyError("no OTLP trace data in JSON") from None
    written: bytes = parsed.SerializeToString()
    return written


def _holders(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans and links of a request."""
    for resource_spans in data.get("resourceSpans", ()):
        for scope_spans in resource_spans.get("scopeSpans", ()):
            for span in scope_spans.get("spans", ()):
                yield span
                yield from span.get("links", ())
