"""What differs between a run and the one that it is compared with, for the page: what came, what went, what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spangate.cli._diff_words import Group, accepted_by, answer, entry_words, groups, recounted_words, summary, told
from spangate.cli._report.texts import Texts
from spangate.compare import Difference

MAX_CHANGES: Final = 300
"""So many changes are listed; the tree shows all of them."""
_SIGNS: Final = {
    "added": "+",
    "dropped": "\N{MINUS SIGN}",
    "reordered": "↕",
    "drift": "~",
    "edge_added": "+",
    "edge_dropped": "\N{MINUS SIGN}",
    "log_added": "+",
    "log_dropped": "\N{MINUS SIGN}",
}
_ANSWERS: Final = {
    "bounded": "Nothing has changed that is not allowed.",
    "unbounded": "Something has changed that nothing allows.",
    "refused": "The two runs are not compared call by call. The tree shows what stands side by side.",
}


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One change. ``sign`` stands before it, ``row`` is its row in the tree, ``accepted`` why it may be."""

    kind: str
    sign: str
    words: str
    name: str
    row: int | None
    more: str
    accepted: str


@dataclass(frozen=True, slots=True)
class Part:
    """Changes under a heading; ``more`` says how many are not listed."""

    heading: str
    number: int
    changes: Sequence[ChangeLine]

    @property
    def more(self) -> str:
        """How many are not listed."""
        hidden = self.number - len(self.changes)
        return f"and {hidden:,} more, which the tree marks" if hidden else ""


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """What differs: ``answer`` (bounded, unbounded, refused), in words what that means, and in ``summary`` how much."""

    answer: str
    words: str
    summary: str
    parts: Sequence[Part]
    notes: Sequence[str]


def difference_view(found: Difference, texts: Texts, places: Mapping[int, int]) -> DifferenceView:
    """Return what the page says of a difference; ``places`` are the rows of the tree by the identity of their spans."""
    same = groups(found.changes)
    sorted_out = (
        ("What nothing allows", [group for group in same if not group.first.is_accepted]),
        ("What is allowed, or known to vary", [group for group in same if group.first.is_accepted]),
    )
    word = answer(found)
    return DifferenceView(
        answer=word,
        words=_ANSWERS[word],
        summary=texts.sentence(summary(found)),
        parts=[
            Part(heading, len(listed), [_line(group, texts, places) for group in listed[:MAX_CHANGES]])
            for heading, listed in sorted_out
            if listed
        ],
        notes=[*map(texts.sentence, _notes(found))],
    )


def _line(group: Group, texts: Texts, places: Mapping[int, int]) -> ChangeLine:
    change = group.first
    rows = (places.get(id(span)) for span in (change.b, change.a) if span is not None)
    many = f"{group.count:,} times" if group.count > 1 else ""
    agent = f"in {change.agent}" if change.agent else ""
    digests = f"digest {group.digests}" if group.digests else ""
    return ChangeLine(
        kind=change.kind,
        sign="?" if change.unknown else _SIGNS[change.kind],
        words=group.word,
        name=texts.name(change.name),
        row=next((row for row in rows if row is not None), None),
        more=texts.sentence(", ".join(part for part in (many, agent, group.what, digests) if part)),
        accepted=texts.sentence(accepted_by(change)),
    )


def _notes(found: Difference) -> Iterator[str]:
    yield from (f"Expired: {entry_words(entry)} allows nothing{told(entry)}" for entry in found.expired)
    yield from (f"Unused: {entry_words(entry)}{told(entry)}" for entry in found.unused)
    yield from (f"Captured wrong: {fault}" for fault in found.faults)
    yield from found.notes
    yield from filter(None, [recounted_words(found)])
