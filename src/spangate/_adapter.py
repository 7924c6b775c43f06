"""The only translator between the SDK's spans and records: SDK span to record, and verdict to SDK span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opentelemetry.sdk.trace import Event as SDKEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link as SDKLink
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from spangate._payload import mapping_bytes, text_bytes
from spangate._records import Event, Link, Span, SpanStatus, Verdict
from spangate._sdk.fields import whole
from spangate._sdk.odd import clean_text, code_of, kind_of, nanoseconds, sendable, text
from spangate._sdk.unshared import holds_alone
from spangate._verdict.account import EVALUATION_EVENT, evaluation, verdict_span_attributes, verdict_span_id
from spangate._version import __version__

SCOPE = InstrumentationScope("spangate", __version__)
_STATUS: Mapping[StatusCode, SpanStatus] = {StatusCode.OK: "OK", StatusCode.ERROR: "ERROR"}
# A look-up in an enum's class costs as much as a call.
_UNSET, _INTERNAL, _CLIENT = StatusCode.UNSET, SpanKind.INTERNAL, SpanKind.CLIENT
_SAMPLED = TraceFlags.SAMPLED
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_PARENT = (None, None, False, TraceFlags.SAMPLED)


def record(span: ReadableSpan, *, is_open: bool, is_shared: bool = True) -> Span:
    """Read an SDK span. The attributes are copied: an open span is still being written, an ended one may be redacted.

    Only those of an ended span that is not ``is_shared``, which nobody but its reader holds, are taken as they are.

    What is ordinary is told here rather than in the functions for odd values: this runs for every span there is.
    """
    (
        context, parent, name, kind, start, end, scope, version, code, description, attributes, events, links,
        dropped_attributes, dropped_events, dropped_links, resource,
    ) = whole(span)  # fmt: skip
    trace_id, span_id, _, flags = context[:4]
    _, parent_id, is_remote, parent_flags = _NO_PARENT if parent is None else parent[:4]
    return Span(
        trace_id,
        span_id,
        parent_id,
        name if type(name) is str else text(name),
        start if type(start) is int else nanoseconds(start) or 0,
        None if is_open else end if type(end) is int else nanoseconds(end),
        "INTERNAL" if kind is _INTERNAL else "CLIENT" if kind is _CLIENT else kind_of(kind).name,
        scope if type(scope) is str else text(scope or ""),
        "UNSET" if code is _UNSET else _STATUS.get(code_of(code), "UNSET"),
        text(description) if description else "",
        _NOTHING
        if not attributes
        else attributes.copy()
        if is_open or is_shared or not holds_alone(span)
        else attributes,
        _events(events) if events else (),
        _links(links) if links else (),
        resource,
        is_remote,
        parent_flags & _SAMPLED != 0,
        flags & _SAMPLED != 0,
        dropped_attributes,
        dropped_events,
        dropped_links,
        version if type(version) is str else text(version or ""),
        span,
        type(name) is str
        and type(start) is type(end) is int
        and type(kind) is SpanKind
        and type(code) is StatusCode
        and (description is None or type(description) is str),
    )


def held_bytes(span: ReadableSpan) -> int:
    """Return what the attributes and events of an ended span weigh, without a record of it."""
    total = mapping_bytes(_attributes(span))
    for event in span.events:
        total += text_bytes(text(event.name)) + mapping_bytes(event.attributes or _NOTHING)
    return total


def _attributes(span: ReadableSpan) -> Mapping[str, Any]:
    attributes: Any = span.attributes  # a proxy, whose copy() is C code: dict() over it costs ten times as much
    return attributes.copy() if attributes else _NOTHING


def _events(events: Iterable[SDKEvent]) -> Sequence[Event]:
    kept = tuple(events)  # of an open span they may grow meanwhile
    return [Event(text(event.name), dict(event.attributes or {}), nanoseconds(event.timestamp) or 0) for event in kept]


def _links(links: Iterable[SDKLink]) -> Sequence[Link]:
    return [Link(link.context.trace_id, link.context.span_id, dict(link.attributes or {})) for link in tuple(links)]


def verdict_span(
    verdict: Verdict, root: ReadableSpan, number: int, end_ns: int, *, is_anchored: bool = False
) -> ReadableSpan:
    """Make the span that takes the place of a refused run (design section 5).

    Args:
        verdict: what was decided.
        root: the run's root, ended or still open.
        number: counts the verdicts of this run; the span id depends on it and on the run id alone, so that a span
            sent twice is the same one.
        end_ns: when the run is over for want of an ended root, nanoseconds.
        is_anchored: whether ``root`` is a request that stays, with the run below it.
    """
    context = root.context
    start = sendable(root.start_time)
    end = end_ns if root.end_time is None else sendable(root.end_time)
    return ReadableSpan(
        name=f"{'passed' if verdict.passed else 'refused'} {clean_text(root.name)}",
        context=SpanContext(
            trace_id=context.trace_id,
            span_id=verdict_span_id(verdict.run_id, number),
            is_remote=False,
            trace_flags=context.trace_flags,
            trace_state=context.trace_state,
        ),
        parent=context if is_anchored else root.parent,
        resource=root.resource,
        attributes=verdict_span_attributes(verdict),
        events=[SDKEvent(EVALUATION_EVENT, dict(evaluation(verdict)), max(start, end))],
        links=[SDKLink(context)],
        kind=SpanKind.INTERNAL,
        status=_status(verdict),
        start_time=start,
        end_time=max(start, end),
        instrumentation_scope=SCOPE,
    )


def _status(verdict: Verdict) -> Status:
    for first in verdict.failures:
        return Status(StatusCode.ERROR, clean_text(f"{first.code}: {first.detail}"))
    return Status(StatusCode.UNSET)
