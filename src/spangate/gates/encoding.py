"""Encoding: texts that were cut off or that no exporter can write. Asked of every run, whatever else is configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spangate._payload import has_lone_surrogate, is_cut_json
from spangate._records import Finding, Span
from spangate._run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """Finds half characters, which cost a whole batch at some backends, and JSON that is evidence no longer."""

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield at most one finding of each kind a span; it names the first attribute that is wrong."""
        for span in run.spans:
            half, cut = _flaws(span)
            if half is not None:
                yield Finding("encoding.lone_surrogate", span, f"half a character in {half}")
            if cut is not None:
                yield Finding("encoding.truncated_json", span, f"JSON that was cut off in {cut}")


def _flaws(span: Span) -> tuple[str | None, str | None]:
    """Return where the first half character and the first cut JSON stand."""
    half, cut = _flaws_in(span.attributes)
    for event in span.events:
        event_half, event_cut = _flaws_in(event.attributes)
        half, cut = half or event_half, cut or event_cut
    if not (span.name.isascii() and span.status_description.isascii()):
        named = has_lone_surrogate(span.name) or has_lone_surrogate(span.status_description)
        half = half or ("its name or status" if named else None)
    return half, cut


def _flaws_in(attributes: Mapping[str, Any]) -> tuple[str | None, str | None]:
    half = cut = None
    for key, value in attributes.items():
        kind = type(value)
        if kind is str:
            if half is None and not value.isascii() and has_lone_surrogate(value):
                half = key
            if value[:1] in "{[" and cut is None and is_cut_json(value):
                cut = key
        elif kind is tuple or kind is list:
            for item in value:
                if half is None and type(item) is str and has_lone_surrogate(item):
                    half = key
    return half, cut
