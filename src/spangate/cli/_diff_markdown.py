"""A diff as Markdown, made for the summary of a CI job: nothing that a span is called is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spangate._units import counted, shown
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

MAX_ROWS: Final = 100
"""A summary may hold one mebibyte; JSON has all."""
_LONG: Final = 300
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|~^$@:/&<>=])")
_SIGNS: Final = {"bounded": "✅", "unbounded": "❌", "refused": "⚠️"}


def escaped(text: str) -> str:
    """Return a text that reads as it is in Markdown: on one line, no markup, no link, no mention, no HTML."""
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shown(text, _LONG))


_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "@": "&#64;", ":": "&#58;", "$": "&#36;"}


def diff_markdown(found: Found) -> str:
    """Write a diff, without a line break at the end."""
    return "\n".join(_lines(found))


def _lines(found: Found) -> Iterator[str]:
    word = answer(found)
    yield f"### {_SIGNS[word]} {word}: {escaped(title(found))}"
    yield ""
    yield escaped(summary(found))
    if isinstance(found, Alone):
        return
    if found.refusal is None:
        told_first = [group for group in groups(found.changes) if not group.first.is_accepted]
        told_last = [group for group in groups(found.changes) if group.first.is_accepted]
        yield from _table([*told_first, *told_last])
        yield from _beside(found)
    yield ""
    yield f"<sub>A {escaped(found.a.run_id)}, B {escaped(found.b.run_id)}</sub>"


def _table(rows: list[Group]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield "| change | what | agent | arguments, digest | span | |"
    yield "|---|---|---|---|---|---|"
    for group in rows[:MAX_ROWS]:
        change = group.first
        many = f" ({group.count:,})" if group.count > 1 else ""
        what = "; ".join(part for part in (group.what, group.digests) if part)
        cells = (f"{change.name}{many}", change.agent, what, group.where, accepted_by(change))
        kind = group.word if change.is_accepted else f"**{group.word}**"
        yield f"| {kind} | {' | '.join(escaped(cell) for cell in cells)} |"
    if len(rows) > MAX_ROWS:
        yield ""
        yield f"and {counted(len(rows) - MAX_ROWS, 'more change')}, which `--format json` writes"


def _beside(found: Difference) -> Iterator[str]:
    said = [f"expired, allows nothing: {entry_words(entry)}{told(entry)}" for entry in found.expired]
    said += [f"unused: {entry_words(entry)}{told(entry)}" for entry in found.unused]
    said += [f"capture fault: {fault}" for fault in found.faults]
    said += [*found.notes, recounted_words(found)]
    lines = [f"- {escaped(line)}" for line in said if line]
    yield from ["", *lines] if lines else ()
