"""What is known of the request of every model call: whether it names a model, and whether its prompt has a hash.

To read and hash every prompt would take longer than all the gates together. So the first requests of a run are read to
the end, and of the many others those that record the same attributes count as alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from spangate import _keys as keys
from spangate._dialects import dialect_of
from spangate._fingerprint import fingerprint
from spangate._payload import span_bytes
from spangate._records import Span
from spangate._usage.calls import Calls

READ: Final = 4
"""So many requests of a run are read to the end: they are read once more when the run leaves."""
READ_OTHERS: Final = 64
"""And so many of the others, where they record other attributes."""
READ_BYTES: Final = 4 << 20
"""And no more than about so many bytes of them, each time."""
UNRECORDED: Final = "no messages are recorded"


class Known(NamedTuple):
    """What one span tells of its request. ``gap`` says why its prompt has no hash, and is empty if it has one."""

    model: bool
    pinned: bool
    gap: str


_ALL: Final = Known(model=True, pinned=False, gap="")


@dataclass(slots=True)
class Lack:
    """The model calls that lack something: how many, the first of them, and the reasons that are given."""

    count: int = 0
    first: Span | None = None
    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, count: int, first: Span, reason: str = "") -> None:
        """Count so many calls, of which one is the first."""
        self.count += count
        if self.first is None or first.start_ns < self.first.start_ns:
            self.first = first
        if reason:
            self.reasons[reason] = None

    def with_others(self, other: Lack) -> Lack:
        """Return both together."""
        both = replace(self, reasons={**self.reasons, **other.reasons})
        if other.first is not None:
            both.add(other.count, other.first)
        return both


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

    def enter(self, known: Known, count: int, first: Span) -> None:
        """Enter what so many calls know."""
        if not known.model:
            self.unnamed.add(count, first)
        elif known.pinned:
            self.declared.add(count, first)
        if known.gap:
            self.unhashed.add(count, first, known.gap)


def requests_of(calls: Calls) -> Requests:
    """Ask every model call of a run. Spans that record one call know together what any of them knows."""
    reader = _Reader()
    ask = reader.ask
    found = Requests(len(calls))
    for call in calls.joined:
        found.enter(_together([ask(seen.span) for seen in call.sightings]), 1, call.span)
    lacking: dict[Known, int] = {}
    first: dict[Known, Span] = {}
    last, alike = _ALL, 0  # most calls of a run know as much as the one before
    for span in calls.single:
        known = ask(span)
        if known is last:
            alike += 1
            continue
        lacking[last] = lacking.get(last, 0) + alike
        last, alike = known, 1
        first.setdefault(known, span)
    lacking[last] = lacking.get(last, 0) + alike
    for known, span in first.items():
        found.enter(known, lacking[known], span)
    return found


def _together(known: Sequence[Known]) -> Known:
    """Return what several spans know of one call. A reason that says more than that nothing was recorded goes first."""
    gaps = [one.gap for one in known]
    telling = next((gap for gap in gaps if gap != UNRECORDED), UNRECORDED)
    observed = any(one.model and not one.pinned for one in known)
    return Known(
        model=any(one.model for one in known),
        pinned=not observed and any(one.pinned for one in known),
        gap=telling if all(gaps) else "",
    )


class _Budget:
    """How many requests may still be read, and bytes of them."""

    def __init__(self, count: int) -> None:
        self._count, self._bytes = count, READ_BYTES

    def allows(self, span: Span) -> bool:
        """Say whether one more may be read, which is then taken to have been."""
        if self._count > 0 < self._bytes:
            self._count -= 1
            self._bytes -= span_bytes(span)
            return True
        return False


class _Reader:
    """Reads requests while that takes little, and remembers what spans with the same attributes told.

    What is known alike is one object, so that it can be told by identity.
    """

    def __init__(self) -> None:
        self._same: dict[Known, Known] = {_ALL: _ALL}
        self._any = _Budget(READ)
        self._others = _Budget(READ_OTHERS)
        self._alike: dict[Any, Known] = {}
        self._in_scope: dict[str, Known] = {}

    def ask(self, span: Span) -> Known:
        """Return what a span tells, or what others that are like it did."""
        if keys.FINGERPRINT_SOURCE in span.attributes:
            return self._one(_stamped(span))
        names = _names(span)
        if self._any.allows(span):
            return self._learn(span, names)
        alike = self._alike.get(names)
        if alike is not None:
            return alike
        if span.scope not in self._in_scope or self._others.allows(span):
            return self._learn(span, names)
        return self._in_scope[span.scope]

    def _learn(self, span: Span, names: Any) -> Known:
        known = self._alike[names] = self._in_scope[span.scope] = self._one(_read(span))
        return known

    def _one(self, known: Known) -> Known:
        return self._same.setdefault(known, known)


def _names(span: Span) -> Any:
    return (span.scope, bool(span.events), *span.attributes)


def _stamped(span: Span) -> Known:
    attributes = span.attributes
    return Known(
        model=attributes.get(keys.FINGERPRINT_MISSING_MODEL) == "false",
        pinned=attributes.get(keys.FINGERPRINT_MODEL_SOURCE) == "config",
        gap="" if keys.PROMPT_HASH in attributes else str(attributes.get(keys.FINGERPRINT_GAP, UNRECORDED)),
    )


def _read(span: Span) -> Known:
    stamps = fingerprint(dialect_of(span).request(span), source="attributes")
    told = span.attributes.get(keys.FINGERPRINT_GAP, stamps.get(keys.FINGERPRINT_GAP, UNRECORDED))
    return Known(
        model=stamps[keys.FINGERPRINT_MISSING_MODEL] == "false",
        pinned=False,
        gap="" if keys.PROMPT_HASH in stamps else str(told),
    )
