"""What a diff says in words, whatever it is written as: what changed, where, what allows it, and the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from spangate._records import Span
from spangate._run import Run
from spangate._units import counted
from spangate.compare._changes import Change, Difference
from spangate.compare._rules import Allowance

WORDS: Final = {
    "added": "added",
    "dropped": "dropped",
    "reordered": "reordered",
    "drift": "drift",
    "edge_added": "edge added",
    "edge_dropped": "edge dropped",
    "log_added": "log added",
    "log_dropped": "log dropped",
}
_NAMED_SPANS: Final = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that say the same of several spans."""

    first: Change
    changes: tuple[Change, ...]

    @property
    def count(self) -> int:
        """For how many changes it stands."""
        return sum(change.count for change in self.changes)

    @property
    def word(self) -> str:
        """The class of change."""
        return "not evaluable" if self.first.unknown else WORDS[self.first.kind]

    @property
    def where(self) -> str:
        """The spans, the first few of them."""
        places = [_place(change) for change in self.changes[:_NAMED_SPANS]]
        more = f" and {len(self.changes) - _NAMED_SPANS:,} more" if len(self.changes) > _NAMED_SPANS else ""
        return ", ".join(place for place in places if place) + more

    @property
    def what(self) -> str:
        """What is different, behind the name."""
        change = self.first
        if change.unknown:
            return f"{change.unknown}; compare it by name only: coarse = [{_toml(change.name)}]"
        if change.kind == "drift":
            return ", ".join(change.keys) or "arguments that are no object"
        return ""

    @property
    def digests(self) -> str:
        """The digests of the arguments."""
        before, after = self.first.digest_a, self.first.digest_b
        if self.first.kind == "drift" and before and after:
            return f"{before} -> {after}"
        return after or before or ""


@dataclass(frozen=True, slots=True)
class Alone:
    """A run that only one of the two files has, and what is said of it."""

    name: str
    what: str
    a: Run | None
    b: Run | None


Found: TypeAlias = Difference | Alone
"""What there is to tell of two files: a difference, or a run without a counterpart."""


def groups(changes: Iterable[Change]) -> list[Group]:
    """Gather changes that differ in nothing but their spans."""
    found: dict[object, list[Change]] = {}
    for change in changes:
        key = (
            *(change.kind, change.agent, change.name, change.keys, change.digest_a, change.digest_b),
            *(change.unknown, change.allowance, change.varies),
        )
        found.setdefault(key, []).append(change)
    return [Group(same[0], tuple(same)) for same in found.values()]


def answer(found: Found) -> str:
    """Return the answer in one word."""
    return (
        "refused"
        if isinstance(found, Alone) or found.refusal is not None
        else "bounded"
        if found.bounded
        else "unbounded"
    )


def title(found: Found) -> str:
    """Return the name of what was diffed."""
    return found.name if isinstance(found, Alone) else found.b.name


def summary(found: Found) -> str:
    """Say how much of what has changed, and how much of it is accepted; or why there is no diff."""
    if isinstance(found, Alone):
        return found.what
    if found.refusal is not None:
        return found.refusal
    numbers: Counter[str] = Counter()
    for change in found.unaccepted:
        numbers["not evaluable" if change.unknown else WORDS[change.kind]] += number_of(change)
    said = [f"{number:,} {word}" for word, number in numbers.items()]
    allowed = sum(number_of(change) for change in found.changes if change.allowance is not None)
    varies = sum(number_of(change) for change in found.changes if change.allowance is None and change.varies)
    said += [f"{allowed:,} allowed"] if allowed else []
    said += [f"{varies:,} known to vary"] if varies else []
    return ", ".join(said) or "nothing has changed"


def number_of(change: Change) -> int:
    """Say for how many changes one stands: an edge is one, however many children there are."""
    return 1 if change.kind in ("edge_added", "edge_dropped") else change.count


def accepted_by(change: Change) -> str:
    """Say what accepts a change."""
    if change.allowance is not None:
        return f"allowed{told(change.allowance)}"
    return "the baselines vary in it, too" if change.varies else ""


def told(entry: Allowance) -> str:
    """Say why, where and until when an entry allows something."""
    said = [entry.reason, entry.source, f"until {entry.expires.isoformat()}" if entry.expires else ""]
    return "".join(f", {part}" for part in said if part)


def entry_words(entry: Allowance) -> str:
    """Name an entry."""
    return f"{entry.kind} {entry.name}" + (f" ({entry.key})" if entry.key else "")


def recounted_words(found: Difference) -> str:
    """Say that edges are there another number of times, which is no change."""
    if not found.recounted:
        return ""
    edge, (before, after) = next(iter(found.recounted.items()))
    more = f" and {counted(len(found.recounted) - 1, 'other')}" if len(found.recounted) > 1 else ""
    return f"the same edge another number of times, which is no change: {edge} ({before:,} -> {after:,}){more}"


def _place(change: Change) -> str:
    if change.a is not None and change.b is not None:
        return f"{change.a.hex_id} -> {change.b.hex_id}"
    span: Span | None = change.b or change.a
    return "" if span is None else span.hex_id


def _toml(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
