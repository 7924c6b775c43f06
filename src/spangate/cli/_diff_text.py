"""A diff as plain text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spangate._run import Run
from spangate._units import counted, shown
from spangate._verdict.text import Part, Style
from spangate.cli._diff_words import (
    Alone,
    Found,
    Group,
    accepted_by,
    answer,
    entry_words,
    groups,
    recounted_words,
    summary,
    title,
    told,
)
from spangate.compare._changes import Difference

MAX_LINES: Final = 60
"""So many changes are written out; JSON has all."""
_WIDTH: Final = 14
_LONG: Final = 300
_PARTS: Final[dict[str, Part]] = {"bounded": "pass", "unbounded": "fail", "refused": "warn"}


def diff_text(found: Found, style: Style) -> str:
    """Write a diff over several lines, without a line break at the end."""
    return "\n".join(_lines(found, style))


def _lines(found: Found, style: Style) -> Iterator[str]:
    word = answer(found)
    yield f"{style(word.upper(), _PARTS[word])}  {shown(title(found))}: {shown(summary(found), _LONG)}"
    if isinstance(found, Alone):
        return
    yield style(f"    A  {_which(found.a)}", "dim")
    yield style(f"    B  {_which(found.b)}", "dim")
    if found.refusal is not None:
        return
    told_last = [group for group in groups(found.changes) if group.first.is_accepted]
    told_first = [group for group in groups(found.changes) if not group.first.is_accepted]
    in_order = [*told_first, *told_last]
    for group in in_order[:MAX_LINES]:
        yield from _change(group, style)
    if len(in_order) > MAX_LINES:
        yield style(f"  and {len(in_order) - MAX_LINES:,} more, which --format json writes", "dim")
    yield from _beside(found, style)


def _which(run: Run) -> str:
    return f"run {shown(run.run_id)}, trace {run.root.hex_trace_id}, {counted(len(run.spans), 'span')}"


def _change(group: Group, style: Style) -> Iterator[str]:
    change = group.first
    part: Part = "dim" if change.is_accepted else "gap" if change.unknown else "fail"
    many = f" ({group.count:,})" if group.count > 1 else ""
    agent = f" in {shown(change.agent)}" if change.agent else ""
    what = f": {shown(group.what, _LONG)}" if group.what else ""
    yield f"  {style(group.word.ljust(_WIDTH), part)}{shown(change.name)}{many}{agent}{what}"
    below = [f"digest {group.digests}"] if group.digests else []
    below += [f"span {group.where}"] if group.where else []
    below += [shown(accepted_by(change), _LONG)] if change.is_accepted else []
    if below:
        yield style(f"  {'':{_WIDTH}}{'; '.join(below)}", "dim")


def _beside(found: Difference, style: Style) -> Iterator[str]:
    expired = [f"{entry_words(entry)} allows nothing{told(entry)}" for entry in found.expired]
    unused = [f"{entry_words(entry)}{told(entry)}" for entry in found.unused]
    notes = [*found.notes, *filter(None, [recounted_words(found)])]
    said: list[tuple[str, Part, Sequence[str]]] = [
        ("expired", "warn", expired),
        ("unused", "warn", unused),
        ("capture fault", "warn", found.faults),
        ("note", "dim", notes),
    ]
    for label, part, lines in said:
        for line in lines:
            yield f"  {style(label.ljust(_WIDTH), part)}{shown(line, _LONG)}"
