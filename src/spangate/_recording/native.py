"""The native recording, line by line: spans as they start and end, so that those still open are known.

Each line is one JSON object:

* ``{"spangate.recording": 1}`` comes first and names the version of the format;
* ``{"resource": 0, "attributes": [...]}`` tells the attributes of a resource, before the first span that names it;
* ``{"start": {...}, "scope": {...}, "resource": 0}`` is a span that starts, with what it has by then;
* ``{"end": {...}, "scope": {...}, "resource": 0}`` is a span that has ended, with all that it has.

The span objects, scopes and attributes are those of OTLP/JSON. OTLP has no field for what ``"sampled": false`` and
``"parentSampled": false`` say beside a span. A recording may be appended to, with another first line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangate._errors import RecordingError
from spangate._otlp.fields import UINT32, an_object, kind_of, whole_at
from spangate._otlp.json import parse, read_scope, read_span
from spangate._otlp.value import read_attributes, write_attributes
from spangate._otlp.write import dump, write_scope, write_span
from spangate._records import Span

MARK: Final = "spangate.recording"
VERSION: Final = 1
HEADER: Final = dump({MARK: VERSION}) + "\n"


class LineWriter:
    """Writes the lines of a recording. Each call returns whole lines, so that a crash can spoil the last one only."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last: tuple[Mapping[str, Any], int] | None = None

    def started(self, span: Span) -> str:
        """Return the lines for a span that has started."""
        return self._lines("start", replace(span, end_ns=None))

    def ended(self, span: Span) -> str:
        """Return the lines for a span that has ended."""
        return self._lines("end", span)

    def _lines(self, what: str, span: Span) -> str:
        declared, number = self._resource(span.resource)
        found = {what: write_span(span), "scope": write_scope(span), "resource": number}
        beside = {"sampled": span.sampled, "parentSampled": span.parent_sampled}
        return declared + dump(found | {name: value for name, value in beside.items() if not value}) + "\n"

    def _resource(self, resource: Mapping[str, Any]) -> tuple[str, int]:
        if self._last is not None and self._last[0] is resource:
            return "", self._last[1]
        attributes = write_attributes(resource)
        key = dump(attributes)
        is_new = key not in self._numbers
        number = self._numbers.setdefault(key, len(self._numbers))
        self._last = resource, number
        return (dump({"resource": number, "attributes": attributes}) + "\n" if is_new else ""), number


class LineReader:
    """Reads the lines of a recording and gathers its spans by trace, in the order of their starts."""

    def __init__(self) -> None:
        self._resources: dict[int, dict[str, Any]] = {}
        self._spans: dict[int, list[Span]] = {}
        self._open: dict[int, dict[int, int]] = {}

    def absorb(self, line: bytes) -> None:
        """Take in one line.

        Raises:
            RecordingError: it is no line of a recording.
        """
        found = an_object(parse(line))
        if "start" in found:
            self._start(_span(found, "start", self._resources))
        elif "end" in found:
            self._end(_span(found, "end", self._resources))
        elif "resource" in found:
            self._resources[whole_at(found, "resource", UINT32)] = read_attributes(found)
        elif MARK not in found:
            raise RecordingError(f"{MARK}, resource, start or end is wanted, here is {kind_of(', '.join(found))}")
        elif found[MARK] != VERSION:
            raise RecordingError(f"version {kind_of(found[MARK])} of the format: this spangate reads {VERSION}")

    def _start(self, span: Span) -> None:
        spans = self._spans.setdefault(span.trace_id, [])
        self._open.setdefault(span.trace_id, {})[span.span_id] = len(spans)
        span.end_ns = None
        spans.append(span)

    def _end(self, span: Span) -> None:
        if span.end_ns is None:
            raise RecordingError("an end time is wanted, which is missing", field="end.endTimeUnixNano")
        spans = self._spans.setdefault(span.trace_id, [])
        place = self._open.get(span.trace_id, {}).pop(span.span_id, None)
        if place is None:
            spans.append(span)
        else:
            spans[place] = span

    def take(self, trace_id: int) -> list[Span]:
        """Hand over the spans of a trace and forget them; none if there are none."""
        self._open.pop(trace_id, None)
        return self._spans.pop(trace_id, [])

    def left(self) -> list[int]:
        """Return the ids of the traces that are not handed over."""
        return list(self._spans)


def _span(found: Mapping[str, Any], what: str, resources: Mapping[int, dict[str, Any]]) -> Span:
    number = whole_at(found, "resource", UINT32)
    if number not in resources:
        raise RecordingError(f"resource {number} was not told before", field="resource")
    scope, version = read_scope(found)
    try:
        span = read_span(found[what], scope, version, resources[number])
    except RecordingError as error:
        raise error.within(what) from None
    span.sampled = found.get("sampled") is not False
    span.parent_sampled = found.get("parentSampled") is not False
    return span
