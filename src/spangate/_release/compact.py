"""Spans that leave in their compact form: the itinerary of a run, without what was said on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from opentelemetry.sdk.trace import Event
from opentelemetry.trace import Status, StatusCode

from spangate import _keys as keys
from spangate._compact.form import Keep, compact, hidden_description
from spangate._compact.tree import hash_of_compact, schema_hash_of_compact
from spangate._records import Finding, Span, Verdict
from spangate._release.leaving import ReleasedSpan
from spangate._release.packing import Packed, Stamps
from spangate._sdk.odd import code_of, sendable
from spangate._verdict.account import clean, verdict_attributes

_BEGINNING: Final = 24
"""Characters of a message by which it is known again where it is repeated."""


class CompactSpan(ReleasedSpan):
    """An ended span as it leaves in its compact form, which its record has already."""

    def __init__(self, known: Span, stamps: Mapping[str, Any]) -> None:
        """Take over the span that ``known`` was read from, but for everything that may be payload."""
        super().__init__(known, stamps)
        self._attributes = {**stamps, **known.attributes}
        self._events = [Event(clean(event.name), event.attributes, sendable(event.time_ns)) for event in known.events]
        if (self.status.description or "") != known.status_description:
            code = code_of(self.status.status_code)
            described = clean(known.status_description) if code is StatusCode.ERROR else ""
            self._status = Status(code, described or None)


class Compactor:
    """Makes compact forms, and gives raw payloads to ``keep``, if anybody keeps them."""

    def __init__(self, keep: Keep | None = None) -> None:
        self._keep = keep

    def __call__(self, spans: Sequence[Span], stamps: Stamps) -> Packed:
        """Have spans leave in their compact forms. Stamps are made from the spans as they were."""
        forms = [self._form(span, stamps(span)) for span in spans]
        return Packed(forms, lambda _span: {}, CompactSpan, _told)

    def _form(self, span: Span, stamps: Mapping[str, Any]) -> Span:
        form = compact(span, self._keep)
        return replace(form, attributes={**stamps, **form.attributes}, weight=None)


def _told(verdict: Verdict, forms: Sequence[Span]) -> Mapping[str, Any]:
    """Return a verdict as attributes, with the hashes of the run and without what it repeats of messages of errors."""
    silent = replace(verdict, findings=tuple(map(_silenced, verdict.findings)))
    hashes = {keys.TREE_HASH: hash_of_compact(forms), keys.TREE_SCHEMA_HASH: schema_hash_of_compact(forms)}
    return {**verdict_attributes(silent), **hashes}


def _silenced(finding: Finding) -> Finding:
    """Take the words out of a finding if they repeat how the message of an error begins that does not leave."""
    span = finding.span
    hidden = "" if span is None else hidden_description(span).strip()[:_BEGINNING].split("\n", 1)[0]
    return replace(finding, detail="") if hidden and hidden in finding.detail else finding
