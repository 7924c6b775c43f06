"""What the SDK keeps in a span, taken out in one step where that is known to be what the span's properties return.

A property of an SDK span is a call, some make a copy, and every span there is comes by here. The properties are the
truth: a probe holds the fields to them when this module is imported, and a span that is not the SDK's own, or that
keeps something else in its fields, is read by its properties.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeAlias

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, SpanContext

from spangate._repeatable import CountingIds

Fields: TypeAlias = tuple[Any, ...]

_STARTED: Final = attrgetter("_context", "_parent", "_attributes._dict")
_WHOLE: Final = attrgetter(
    *("_context", "_parent", "_name", "_kind", "_start_time", "_end_time"),
    *("_instrumentation_scope._name", "_instrumentation_scope._version", "_status._status_code"),
    *("_status._description", "_attributes._dict", "_events._dq", "_links._dq"),
    *("_attributes.dropped", "_events.dropped", "_links.dropped", "_resource._attributes._dict"),
)
_KEPT: Final = attrgetter(
    *("_name", "_context", "_kind", "_instrumentation_info", "_parent"),
    *("_start_time", "_end_time", "_links", "_status"),
)


def whole(span: ReadableSpan) -> Fields:
    """Return everything that makes a record of a span.

    In this order: its context, its parent's, name, kind, start, end, the scope's name and version, status code and
    description, attributes, events, links, how many of these three the SDK dropped, and the resource's attributes.
    """
    try:
        return _WHOLE(span) if type(span) in _KNOWN else _whole_by_properties(span)
    except AttributeError:
        return _whole_by_properties(span)


def take_over(copy: ReadableSpan, span: ReadableSpan) -> bool:
    """Have ``copy`` keep what ``span`` keeps, but for attributes, events, resource and scope.

    False, and nothing is done, if that is not known to be everything else.
    """
    if type(span) not in _KNOWN:
        return False
    (
        copy._name, copy._context, copy._kind, copy._instrumentation_info, copy._parent,  # noqa: SLF001  see above
        copy._start_time, copy._end_time, copy._links, copy._status,  # noqa: SLF001
    ) = _KEPT(span)  # fmt: skip
    return True


def _started_by_properties(span: Span) -> Fields:
    attributes: Any = span.attributes
    return span.context, span.parent, attributes.copy()


def _whole_by_properties(span: ReadableSpan) -> Fields:
    scope, status = span.instrumentation_scope, span.status
    return (
        *(span.context, span.parent, span.name, span.kind, span.start_time, span.end_time),
        *(("", "") if scope is None else (scope.name, scope.version)),
        *(status.status_code, status.description, span.attributes, span.events, span.links),
        *(span.dropped_attributes, span.dropped_events, span.dropped_links, span.resource.attributes),
    )


class _Keeper(SpanProcessor):
    """Keeps a span as it is handed to processors, live and ended."""

    def __init__(self) -> None:
        self.kept: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: object = None) -> None:  # noqa: ARG002  the SDK's signature
        self.kept.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.kept.append(span)


def _known_types() -> frozenset[type]:
    """Return the SDK's classes of live and ended spans, if their fields say what their properties do.

    The probe asks neither the environment, whose limits could leave nothing to compare, nor the program's random
    numbers, which may be seeded.
    """
    keeper = _Keeper()
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({"probe": 1}),
        shutdown_on_exit=False,
        id_generator=CountingIds(),
        span_limits=SpanLimits(*[SpanLimits.UNSET] * 8),
    )
    provider.add_span_processor(keeper)
    link = Link(SpanContext(1, 1, is_remote=True))
    span = provider.get_tracer("spangate").start_span("probe", attributes={"probe": (1, 2)}, links=[link])
    span.add_event("probe")
    span.end()
    return frozenset(map(type, keeper.kept)) if all(map(_agree, keeper.kept)) else frozenset()


def _agree(span: Any) -> bool:
    try:
        fields, first = _WHOLE(span), _STARTED(span)
    except AttributeError:
        return False
    properties = _whole_by_properties(span)
    return first == _started_by_properties(span) and all(map(_is_same, fields, properties))


def _is_same(field: Any, told: Any) -> bool:
    return tuple(field) == told if isinstance(told, tuple) and not isinstance(field, tuple) else bool(field == told)


def _put(span: Span, key: str, value: str) -> None:
    """Write an attribute as it is, where it pushes out none: the SDK's own way takes ten times as long.

    Only for a span that starts, which no other thread has seen.
    """
    attributes: Any = span._attributes  # noqa: SLF001  what this module is for
    kept, most = attributes._dict, attributes.maxlen  # noqa: SLF001
    if most is None or len(kept) < most:
        kept[key] = value
    else:
        span.set_attribute(key, value)


def has_room(span: ReadableSpan, count: int) -> bool:
    """Say whether so many attributes more push out none that are there."""
    if type(span) not in _KNOWN:
        return True
    attributes: Any = span._attributes  # noqa: SLF001  see above
    return attributes.maxlen is None or len(attributes) + count <= attributes.maxlen


_KNOWN: Final = _known_types()


def is_known(kind: type) -> bool:
    """Say whether it is known what spans of this class keep in their fields."""
    return kind in _KNOWN


ARE_KNOWN: Final = bool(_KNOWN)
"""Whether it is known what the SDK's own spans keep in their fields."""

started: Final[Callable[[Span], Fields]] = _STARTED if ARE_KNOWN else _started_by_properties
"""Returns the context of a span that starts, its parent's, and its attributes."""

put: Final[Callable[[Span, str, str], None]] = _put if ARE_KNOWN else Span.set_attribute
"""Writes an attribute on a span that starts."""
