"""The only translator between the SDK's spans and records: SDK span to record, verdict to SDK span, and release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opentelemetry.sdk.trace import Event as SDKEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link as SDKLink
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from spangate._account import EVALUATION_EVENT, clean, evaluation, verdict_span_attributes, verdict_span_id
from spangate._records import Event, Link, Span, SpanStatus, Verdict
from spangate._version import __version__

SCOPE = InstrumentationScope("spangate", __version__)
_KINDS: Mapping[SpanKind, str] = {kind: kind.name for kind in SpanKind}
_STATUS: Mapping[StatusCode, SpanStatus] = {
    StatusCode.UNSET: "UNSET",
    StatusCode.OK: "OK",
    StatusCode.ERROR: "ERROR",
}
_MAX_TIME = (1 << 64) - 1
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def record(span: ReadableSpan, *, is_open: bool) -> Span:
    """Read an SDK span. The attributes are copied: an open span is still being written."""
    context, parent, scope, status = span.context, span.parent, span.instrumentation_scope, span.status
    return Span(
        context.trace_id,
        context.span_id,
        None if parent is None else parent.span_id,
        _text(span.name),
        _nanoseconds(span.start_time) or 0,
        None if is_open else _nanoseconds(span.end_time),
        _KINDS[span.kind],
        "" if scope is None else scope.name or "",
        _STATUS[status.status_code],
        status.description or "",
        _attributes(span),
        _events(span),
        _links(span),
        span.resource.attributes,
        parent is not None and parent.is_remote,
        parent is None or bool(parent.trace_flags & TraceFlags.SAMPLED),
        bool(context.trace_flags & TraceFlags.SAMPLED),
        span.dropped_attributes,
        span.dropped_events,
        span.dropped_links,
        "" if scope is None else scope.version or "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _nanoseconds(value: object) -> int | None:
    """Return a time that can be reckoned with. The SDK takes text and floats as times and says nothing."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and abs(value) < _MAX_TIME else None if value is None else 0


def _attributes(span: ReadableSpan) -> Mapping[str, Any]:
    attributes: Any = span.attributes  # a proxy, whose copy() is C code: dict() over it costs ten times as much
    return attributes.copy() if attributes else _NOTHING


def _events(span: ReadableSpan) -> Sequence[Event]:
    events = span.events
    if not events:
        return ()
    return [Event(_text(event.name), dict(event.attributes or {}), event.timestamp or 0) for event in events]


def _links(span: ReadableSpan) -> Sequence[Link]:
    links = span.links
    if not links:
        return ()
    return [Link(link.context.trace_id, link.context.span_id, dict(link.attributes or {})) for link in links]


class ReleasedSpan(ReadableSpan):
    """An ended span as it leaves: itself, with stamps added. What its owner wrote is never overwritten.

    It shares the state of the span it stands for, so that the counts of dropped attributes, events and links stay
    true; a rebuilt one would lose them.
    """

    def __init__(self, span: ReadableSpan, stamps: Mapping[str, Any]) -> None:
        self.__dict__.update(span.__dict__)
        self._spangate_stamps = stamps

    @property
    def attributes(self) -> Any:
        """The span's own attributes and the stamps; its own win."""
        return {**self._spangate_stamps, **(super().attributes or {})}

    def to_json(self, indent: int | None = 4) -> str:
        """Write the span with its stamps."""
        written = json.loads(super().to_json(indent=None))
        written["attributes"] = dict(self.attributes)
        return json.dumps(written, indent=indent, default=str)


class CleanedSpan(ReleasedSpan):
    """A released span of which one part would lose the whole batch in the encoder: a lone surrogate, a bad time."""

    @property
    def name(self) -> str:
        """The name, half characters replaced."""
        return _clean(super().name)

    @property
    def status(self) -> Status:
        """The status, half characters of its description replaced."""
        status = super().status
        if not status.description:
            return status
        return Status(status.status_code, _clean(status.description))

    @property
    def events(self) -> Sequence[SDKEvent]:
        """The events, half characters of their names replaced."""
        return [SDKEvent(_clean(event.name), event.attributes, event.timestamp) for event in super().events]

    @property
    def start_time(self) -> int:
        """The start, in the range that can be sent."""
        return _sendable(super().start_time)

    @property
    def end_time(self) -> int:
        """The end, in the range that can be sent."""
        return _sendable(super().end_time)


def release(span: ReadableSpan, stamps: Mapping[str, Any]) -> ReadableSpan:
    """Make the span ready to leave, with ``stamps`` where it has no such attribute itself."""
    return ReleasedSpan(span, stamps) if _is_sendable(span) else CleanedSpan(span, stamps)


def _is_sendable(span: ReadableSpan) -> bool:
    texts = [span.name, span.status.description or "", *(event.name for event in span.events)]
    return (
        _sendable(span.start_time) == span.start_time
        and _sendable(span.end_time) == span.end_time
        and all(_clean(text) == text for text in texts)
    )


def _sendable(value: object) -> int:
    return min(max(_nanoseconds(value) or 0, 0), _MAX_TIME)


def _clean(text: object) -> str:
    return clean(_text(text))


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
    first = verdict.failures[0] if verdict.failures else None
    start = _sendable(root.start_time)
    end = end_ns if root.end_time is None else _sendable(root.end_time)
    return ReadableSpan(
        name=f"refused {_clean(root.name)}" if verdict.verdict == "fail" else f"passed {_clean(root.name)}",
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
        status=Status(StatusCode.ERROR, _clean(f"{first.code}: {first.detail}" if first else "")),
        start_time=start,
        end_time=max(start, end),
        instrumentation_scope=SCOPE,
    )
