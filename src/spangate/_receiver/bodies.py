"""Bodies of requests read within bounds: unpacked, parsed, checked, and divided by trace."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # protobuf ships no stubs
from opentelemetry.proto.trace.v1 import trace_pb2

from spangate._buffer.received import Received

_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS
"""Tells zlib to take gzip and deflate, whichever the header says."""
PACKINGS: Final = frozenset({"gzip", "deflate"})


class BadBodyError(Exception):
    """A body that cannot be taken in. ``is_too_large`` tells a bound from a fault."""

    def __init__(self, why: str, *, is_too_large: bool = False) -> None:
        super().__init__(why)
        self.is_too_large = is_too_large


def unpacked(body: bytes, packing: str, max_bytes: int) -> bytes:
    """Return a body as it was before it was packed. No more than ``max_bytes`` are ever made of it.

    Raises:
        BadBodyError: it is larger, damaged or cut off, or packed in a way that is not known here.
    """
    if packing in ("", "identity"):
        return body
    if packing not in PACKINGS:
        raise BadBodyError(f"content encoding {packing!r} is not known: gzip, deflate and identity are")
    pieces: list[bytes] = []
    left = max_bytes
    while body:  # gzip allows several members, one after another
        unpacker = zlib.decompressobj(_ANY_HEADER)
        try:
            pieces.append(unpacker.decompress(body, left + 1))
        except zlib.error as error:
            raise BadBodyError(f"the {packing} body is damaged: {error}") from None
        left -= len(pieces[-1])
        if left < 0:
            raise BadBodyError(f"unpacked it is larger than {max_bytes} bytes", is_too_large=True)
        if not unpacker.eof:
            raise BadBodyError(f"the {packing} body is cut off")
        body = unpacker.unused_data
    return b"".join(pieces)


class Content(NamedTuple):
    """What a request holds: spans by trace, and how many had to be left out because of their ids."""

    received: list[Received]
    accepted: int
    rejected: int


def content_of(message: bytes, sender_id: int) -> Content:
    """Read an ``ExportTraceServiceRequest``, which looks like ``TracesData``.

    Raises:
        BadBodyError: it is none.
    """
    parsed = trace_pb2.TracesData()
    try:
        parsed.ParseFromString(message)
    except DecodeError:
        raise BadBodyError("no OTLP trace data in protobuf") from None
    counts: dict[bytes, int] = {}
    rejected = 0
    for span in _spans(parsed):
        if _has_ids(span):
            trace_id = span.trace_id
            counts[trace_id] = counts.get(trace_id, 0) + 1
        else:
            rejected += 1
    parts = dict.fromkeys(counts, message)  # as nearly always: nothing is copied
    if rejected or len(counts) > 1:
        parts = {trace_id: part.SerializeToString() for trace_id, part in _by_trace(parsed).items()}
    received = [Received(parts[key], count, int.from_bytes(key, "big"), sender_id) for key, count in counts.items()]
    return Content(received, sum(counts.values()), rejected)


def _spans(parsed: trace_pb2.TracesData) -> Iterator[trace_pb2.Span]:
    for resource_spans in parsed.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield from scope_spans.spans


def _has_ids(span: trace_pb2.Span) -> bool:
    return _is_id(span.trace_id, _TRACE_ID_BYTES) and _is_id(span.span_id, _SPAN_ID_BYTES)


def _is_id(found: bytes, size: int) -> bool:
    return len(found) == size and found.count(0) != size


def _by_trace(parsed: trace_pb2.TracesData) -> dict[bytes, trace_pb2.TracesData]:
    """Divide a request by trace, each part with the resources and scopes around its spans."""
    parts: dict[bytes, trace_pb2.TracesData] = {}
    for resource_spans in parsed.resource_spans:
        resources: dict[bytes, trace_pb2.ResourceSpans] = {}
        for scope_spans in resource_spans.scope_spans:
            scopes: dict[bytes, trace_pb2.ScopeSpans] = {}
            for span in filter(_has_ids, scope_spans.spans):
                key = span.trace_id
                if key not in resources:
                    part = parts.setdefault(key, trace_pb2.TracesData())
                    around = {"resource": resource_spans.resource, "schema_url": resource_spans.schema_url}
                    resources[key] = part.resource_spans.add(**around)
                if key not in scopes:
                    scopes[key] = resources[key].scope_spans.add(
                        scope=scope_spans.scope, schema_url=scope_spans.schema_url
                    )
                scopes[key].spans.append(span)
    return parts
