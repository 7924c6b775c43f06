"""What is known of the request of every model call: whether it names a model, and whether its prompt has a hash.

To read and hash every prompt would take longer than all the gates together. So the first requests of a run are read to
the end, and of the many others those that record the same attributes count as alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from spangate import _keys as keys
from spangate._dialects import dialect_of
from spangate._fingerprint import fingerprint
from spangate._payload import span_bytes
from spangate._records import Span
from spangate._usage.calls import Calls

READ: Final = 256
"""So many requests of a run are read to the end."""
READ_BYTES: Final = 4 << 20
"""And no more than about so many bytes of them."""
UNRECORDED: Final = "its messages are not recorded"


class Known(NamedTuple):
    """What one span tells of its request. ``gap`` says why its prompt has no hash, and is empty if it has one."""

    model: bool
    pinned: bool
    gap: str


@dataclass(slots=True)
class Lack:
    """The model calls that lack something: how many, the first of them, and the reasons that are given."""

    count: int = 0
    first: Span | None = None
    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, span: Span, reason: str = "") -> None:
        """Count a call."""
        self.count += 1
        if self.first is None or span.start_ns < self.first.start_ns:
            self.first = span
        if reason:
            self.reasons[reason] = None

    def with_others(self, other: Lack) -> Lack:
        """Return both together."""
        firsts = [span for span in (self.first, other.first) if span is not None]
        first = min(firsts, key=lambda span: span.start_ns, default=None)
        return Lack(self.count + other.count, first, {**self.reasons, **other.reasons})


@dataclass(frozen=True, slots=True)
class Requests:
    """What a run knows of its model calls: how many there are, and which lack what.

    ``unnamed`` name no model, ``declared`` are stamped with one from the configuration, ``unhashed`` have no hash of
    their prompt.
    """

    total: int
    unnamed: Lack = field(default_factory=Lack)
    declared: Lack = field(default_factory=Lack)
    unhashed: Lack = field(default_factory=Lack)


def requests_of(calls: Calls) -> Requests:
    """Ask every model call of a run. Spans that record one call know together what any of them knows."""
    reader = _Reader()
    found = Requests(len(calls))
    for call in calls.joined:
        spans = [seen.span for seen in call.sightings]
        _enter(found, spans, [reader.ask(span) for span in spans])
    for span in calls.single:
        known = reader.ask(span)
        if known is not _ALL:
            _enter(found, (span,), (known,))
    return found


def _enter(found: Requests, spans: Sequence[Span], known: Sequence[Known]) -> None:
    span = spans[0]
    if not any(one.model for one in known):
        found.unnamed.add(span)
    elif not any(one.model and not one.pinned for one in known):
        found.declared.add(span)
    gaps = [one.gap for one in known]
    if all(gaps):
        found.unhashed.add(span, _telling(gaps))


def _telling(gaps: Iterable[str]) -> str:
    """Return the reason that says more than that nothing was recorded."""
    return next((gap for gap in gaps if gap != UNRECORDED), UNRECORDED)


_ALL: Final = Known(model=True, pinned=False, gap="")


class _Reader:
    """Reads requests while that takes little, and remembers what spans with the same attributes told."""

    def __init__(self) -> None:
        self._left = READ
        self._bytes_left = READ_BYTES
        self._alike: dict[Any, Known] = {}
        self._by_scope: dict[str, Known] = {}

    def ask(self, span: Span) -> Known:
        attributes = span.attributes
        if keys.FINGERPRINT_SOURCE in attributes:
            return _stamped(span)
        if self._left > 0 < self._bytes_left:
            self._left -= 1
            self._bytes_left -= span_bytes(span)
            known = _read(span)
            self._alike[_names(span)] = self._by_scope[span.scope] = known
            return known
        known_alike = self._alike.get(_names(span)) or self._by_scope.get(span.scope)
        if known_alike is None:
            known_alike = self._by_scope[span.scope] = _read(span)
        return known_alike


def _names(span: Span) -> Any:
    return (span.scope, bool(span.events), *span.attributes)


def _stamped(span: Span) -> Known:
    attributes = span.attributes
    known = Known(
        model=attributes.get(keys.FINGERPRINT_MISSING_MODEL) == "false",
        pinned=attributes.get(keys.FINGERPRINT_MODEL_SOURCE) == "config",
        gap="" if keys.PROMPT_HASH in attributes else str(attributes.get(keys.FINGERPRINT_GAP, UNRECORDED)),
    )
    return _ALL if known == _ALL else known


def _read(span: Span) -> Known:
    stamps = fingerprint(dialect_of(span).request(span), source="attributes")
    told = span.attributes.get(keys.FINGERPRINT_GAP, stamps.get(keys.FINGERPRINT_GAP, UNRECORDED))
    known = Known(
        model=stamps[keys.FINGERPRINT_MISSING_MODEL] == "false",
        pinned=False,
        gap="" if keys.PROMPT_HASH in stamps else str(told),
    )
    return _ALL if known == _ALL else known
