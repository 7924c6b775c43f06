"""Ended spans as they leave: with stamps added, and without what no encoder takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Status, StatusCode

from spangate._records import Span
from spangate._sdk.fields import take_over
from spangate._sdk.odd import MAX_TIME, clean_text, code_of, is_sendable, kind_of, sendable
from spangate._verdict.account import clean

Thing = TypeVar("Thing")
_NONE_DROPPED = (0, 0, 0)


class ReleasedSpan(ReadableSpan):
    """An ended span as it leaves: with stamps added, and without what no encoder takes.

    What its owner wrote is never overwritten, and the counts of what the SDK dropped stay true; a span that is merely
    rebuilt would lose them.
    """

    def __init__(self, known: Span, stamps: Mapping[str, Any]) -> None:
        """Take over the span that the record ``known`` was read from."""
        span: ReadableSpan = known.source
        dropped = span.dropped_attributes
        attributes = span.attributes or {} if dropped else known.attributes
        if _is_sendable_as_it_is(known) and take_over(self, span):
            self._events: Sequence[Event] = ()
            if not known.links:
                self._links = ()
        else:
            super().__init__(
                name=clean(known.name),
                context=span.context,
                parent=span.parent,
                events=[_sendable_event(event) for event in span.events] if known.events else (),
                links=span.links if known.links else (),
                kind=kind_of(span.kind),
                resource=span.resource,
                status=_sendable_status(span.status, known),
                start_time=sendable(known.start_ns),
                end_time=sendable(known.end_ns),
            )
        self._attributes = {**stamps, **attributes}
        self._resource = _resources.get(span.resource)
        self._instrumentation_scope = _scopes.get(span.instrumentation_scope)
        is_whole = not (dropped or known.dropped_events or known.dropped_links)
        self._spangate_dropped = _NONE_DROPPED if is_whole else (dropped, known.dropped_events, known.dropped_links)

    @property
    def dropped_attributes(self) -> int:
        """How many attributes are lost."""
        return self._spangate_dropped[0]

    @property
    def dropped_events(self) -> int:
        """How many events are lost."""
        return self._spangate_dropped[1]

    @property
    def dropped_links(self) -> int:
        """How many links are lost."""
        return self._spangate_dropped[2]

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


Form: TypeAlias = Callable[[Span, Mapping[str, Any]], ReleasedSpan]
"""Makes a span that leaves, of a record and its stamps."""


class Leaving(Sequence[ReleasedSpan]):
    """Spans on their way out. Each is made ready when it is asked for: until then it weighs no more than it did."""

    def __init__(
        self,
        known: list[Span],
        stamps: Callable[[Span], Mapping[str, Any]],
        form: Form = ReleasedSpan,
    ) -> None:
        """Take the records of the spans, which are its own from now on, what gives their stamps, what they become."""
        self._known: list[Any] = known
        self._stamps = stamps
        self._form = form

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> Leaving:
        """Return the same spans, to be let go apart from these."""
        return Leaving([*self._known], self._stamps, self._form)

    def let_go(self, start: int, stop: int) -> None:
        """Forget spans that have left. Many at once would keep the interpreter busy for long."""
        self._known[start:stop] = [None] * (stop - start)

    @overload
    def __getitem__(self, at: int) -> ReleasedSpan: ...

    @overload
    def __getitem__(self, at: slice) -> list[ReleasedSpan]: ...

    def __getitem__(self, at: int | slice) -> ReleasedSpan | list[ReleasedSpan]:
        if isinstance(at, slice):
            return [self._form(known, self._stamps(known)) for known in self._known[at]]
        return self._form(self._known[at], self._stamps(self._known[at]))


def _is_sendable_as_it_is(known: Span) -> bool:
    """Say whether no encoder stumbles over a span but for its attributes, resource and scope: nearly always."""
    return (
        known.is_verbatim
        and not known.events
        and known.name.isascii()
        and known.status_description.isascii()
        and 0 <= known.start_ns <= MAX_TIME
        and 0 <= (known.end_ns or 0) <= MAX_TIME
    )


def _sendable_event(event: Event) -> Event:
    if is_sendable(event.timestamp) and _is_clean(event.name):
        return event
    return Event(clean_text(event.name), event.attributes, sendable(event.timestamp))


def _sendable_status(status: Status, known: Span) -> Status:
    code = code_of(status.status_code)
    if code is status.status_code and known.status_description.isascii():
        return status
    return Status(code, clean(known.status_description) or None if code is StatusCode.ERROR else None)


class SharedResource(Resource):
    """A resource that knows its hash.

    Exporters group spans by their resource, which asks for its hash once a span, and the SDK's writes all attributes
    as JSON each time: a tenth of what it takes to encode a span.
    """

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.attributes, resource.schema_url)
        self._spangate_hash = super().__hash__()

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        return self._spangate_hash


def _sendable_scope(scope: InstrumentationScope | None) -> InstrumentationScope | None:
    """Replace half characters in the texts of a scope."""
    if scope is None or all(text is None or _is_clean(text) for text in (scope.name, scope.version, scope.schema_url)):
        return scope
    version, schema = (None if text is None else clean_text(text) for text in (scope.version, scope.schema_url))
    return InstrumentationScope(clean_text(scope.name or ""), version, schema, scope.attributes)


def _is_clean(text: object) -> bool:
    return isinstance(text, str) and clean(text) == text


class _Made(Generic[Thing]):
    """What was made of the few things that many spans share, found again by identity: their hash takes too long."""

    def __init__(self, make: Callable[[Thing], Thing]) -> None:
        self._make = make
        self._made: dict[int, tuple[Thing, Thing]] = {}

    def get(self, thing: Thing) -> Thing:
        found = self._made.get(id(thing))
        if found is None:
            if len(self._made) >= _MAX_MADE:
                self._made.clear()
            found = self._made[id(thing)] = thing, self._make(thing)
        return found[1]


_MAX_MADE = 64
_resources: _Made[Resource] = _Made(SharedResource)
_scopes: _Made[InstrumentationScope | None] = _Made(_sendable_scope)


def _jsonable(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(dict(attributes or {}), default=str))
    return made
