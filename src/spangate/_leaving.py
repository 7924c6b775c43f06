"""Ended spans as they leave: with stamps added, and without what no encoder takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, Status, StatusCode

from spangate._account import clean
from spangate._odd import clean_text, code_of, is_sendable, kind_of, sendable


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
        """Write the span as it leaves."""
        plain = ReadableSpan(
            name=self.name,
            context=self.context,
            parent=self.parent,
            resource=self.resource,
            attributes=_jsonable(self.attributes),
            events=[Event(event.name, _jsonable(event.attributes), event.timestamp) for event in self.events],
            links=self.links,
            kind=self.kind,
            status=self.status,
            start_time=self.start_time,
            end_time=self.end_time,
            instrumentation_scope=self.instrumentation_scope,
        )
        written: str = plain.to_json(indent)
        return written


class CleanedSpan(ReleasedSpan):
    """A released span of which a part would lose the whole batch in the encoder: half a character, a time in words."""

    @property
    def name(self) -> str:
        """The name, half characters replaced."""
        return clean_text(super().name)

    @property
    def kind(self) -> SpanKind:
        """The kind, or the default for what is none."""
        return kind_of(super().kind)

    @property
    def status(self) -> Status:
        """The status, half characters of its description replaced."""
        status = super().status
        code = code_of(status.status_code)
        return Status(code, clean_text(status.description) if status.description and code is StatusCode.ERROR else None)

    @property
    def events(self) -> Sequence[Event]:
        """The events, half characters of their names replaced and their times in the range that can be sent."""
        return [Event(clean_text(event.name), event.attributes, sendable(event.timestamp)) for event in super().events]

    @property
    def instrumentation_scope(self) -> InstrumentationScope | None:
        """The scope, half characters of its texts replaced."""
        scope = super().instrumentation_scope
        if scope is None:
            return None
        version, schema = (None if text is None else clean_text(text) for text in (scope.version, scope.schema_url))
        return InstrumentationScope(clean_text(scope.name or ""), version, schema, scope.attributes)

    @property
    def start_time(self) -> int:
        """The start, in the range that can be sent."""
        return sendable(super().start_time)

    @property
    def end_time(self) -> int:
        """The end, in the range that can be sent."""
        return sendable(super().end_time)


def release(span: ReadableSpan, stamps: Mapping[str, Any]) -> ReadableSpan:
    """Make the span ready to leave, with ``stamps`` where it has no such attribute itself."""
    return ReleasedSpan(span, stamps) if _is_clean(span) else CleanedSpan(span, stamps)


def _jsonable(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(dict(attributes or {}), default=str))
    return made


def _is_clean(span: ReadableSpan) -> bool:
    status, scope = span.status, span.instrumentation_scope
    texts: list[Any] = [span.name, status.description, *(event.name for event in span.events)]
    if scope is not None:
        texts += scope.name, scope.version, scope.schema_url
    return (
        kind_of(span.kind) is span.kind
        and code_of(status.status_code) is status.status_code
        and all(is_sendable(time) for time in (span.start_time, span.end_time, *(one.timestamp for one in span.events)))
        and all(text is None or (isinstance(text, str) and clean(text) == text) for text in texts)
    )
