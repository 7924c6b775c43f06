"""What a page tells of one span when it is asked: all that was recorded, redacted, and folded where it is long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._units import counted, duration
from spangate.cli._report.texts import Texts

MAX_ATTRIBUTES: Final = 300
MAX_EVENTS: Final = 100
MAX_LINKS: Final = 100

Pairs = list[tuple[str, Any]]


class Details:
    """Writes down spans of one run, with times from the run's begin.

    Args:
        texts: Makes texts of what was recorded.
        begin_ns: When the run began, nanoseconds since the epoch.
    """

    def __init__(self, texts: Texts, begin_ns: int) -> None:
        self._texts = texts
        self._begin_ns = begin_ns
        self._places: dict[str, int] = {}
        self.resources: list[Pairs] = []
        """What the spans were recorded by, each resource once; ``resource`` of a span is a place in it."""

    def of(self, span: Span) -> dict[str, Any]:
        """Return what is told of ``span``."""
        told: dict[str, Any] = {
            "facts": [(label, value) for label, value in self._facts(span).items() if value],
            "attributes": self._pairs(span.attributes),
            "resource": self._resource(span),
        }
        if span.events:
            told["events"] = [
                {
                    "name": self._texts.name(event.name),
                    "at": self._at(event.time_ns),
                    "attributes": self._pairs(event.attributes),
                }
                for event in span.events[:MAX_EVENTS]
            ]
        if span.links:
            told["links"] = [
                {"to": f"{link.trace_id:032x}/{link.span_id:016x}", "attributes": self._pairs(link.attributes)}
                for link in span.links[:MAX_LINKS]
            ]
        return told | self._rest(span)

    def _facts(self, span: Span) -> Mapping[str, str]:
        name, texts = dialect_of(span).name, self._texts
        status = (
            span.status if not span.status_description else f"{span.status}: {texts.sentence(span.status_description)}"
        )
        return {
            "Role": span.role,
            "Status": status,
            "Started": self._at(span.start_ns),
            "Took": "still open" if span.end_ns is None else duration(span.end_ns - span.start_ns),
            "Span id": span.hex_id,
            "Parent id": ""
            if span.parent_id is None
            else f"{span.parent_id:016x}" + (" (remote)" if span.parent_remote else ""),
            "Trace id": span.hex_trace_id,
            "Kind": span.kind,
            "Recorded by": texts.name(f"{span.scope} {span.scope_version}".strip()),
            "Read as": name,
            "Dropped": self._dropped(span),
        }

    def _dropped(self, span: Span) -> str:
        lost = ((span.dropped_attributes, "attribute"), (span.dropped_events, "event"), (span.dropped_links, "link"))
        return ", ".join(counted(number, noun) for number, noun in lost if number)

    def _at(self, time_ns: int) -> str:
        if not time_ns:
            return ""
        since = time_ns - self._begin_ns
        return f"{duration(since)} after the run began" if since >= 0 else f"{duration(-since)} before the run began"

    def _pairs(self, attributes: Mapping[str, Any]) -> Pairs:
        first = sorted(attributes.items())[:MAX_ATTRIBUTES]
        return [(self._texts.name(key), self._texts.value(key, value)) for key, value in first]

    def _resource(self, span: Span) -> int:
        pairs = self._pairs(span.resource)
        place = self._places.setdefault(repr(pairs), len(self.resources))
        if place == len(self.resources):
            self.resources.append(pairs)
        return place

    def _rest(self, span: Span) -> dict[str, str]:
        """Say how much there is beyond what is told."""
        parts: Sequence[tuple[int, int, str]] = (
            (len(span.attributes), MAX_ATTRIBUTES, "attribute"),
            (len(span.events), MAX_EVENTS, "event"),
            (len(span.links), MAX_LINKS, "link"),
        )
        left = ", ".join(counted(number - most, f"more {noun}") for number, most, noun in parts if number > most)
        return {"rest": f"{left} in the recording"} if left else {}
