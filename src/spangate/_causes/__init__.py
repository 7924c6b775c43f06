"""Which spans say what caused them, of which kind they are, and what that makes of the run: a graph without times.

A span declares its causes in ``caused_by``: the ids of spans of its run, 16 hex digits each, as a list or as one text.
An id may be preceded by the kind of that cause, as in ``prompt:00f067aa0ba902b7``. The kind of a span is what it says
itself (``cause.kind``, or ``kind`` beside ``caused_by``: prompt, tool, retry, summary), else what its role makes it: a
model call is a prompt, a tool is a tool; else what one that names it says. A span that says ``cause.kind`` and no
``caused_by`` declares that nothing caused it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spangate._dialects._values import parsed
from spangate._dialects.native import native
from spangate._records import ABSENT, Span
from spangate._run import Run

KINDS: Final = frozenset({"prompt", "tool", "retry", "summary"})
CAUSED_BY: Final = "caused_by"
CAUSE_KIND: Final = "cause.kind"

_BY_ROLE: Final[Mapping[str, str]] = {"generation": "prompt", "tool": "tool"}
_ENTRY: Final = re.compile(r"(?:(?P<kind>[a-z]+):)?(?:0x)?(?P<id>[0-9a-fA-F]{1,16})")
_DECLARING: Final = frozenset({CAUSED_BY, f"agent.{CAUSED_BY}", CAUSE_KIND})


@dataclass(slots=True)
class Causes:
    """What the spans of a run declare.

    ``of`` are the causes of each declaring span that are in the run, ``missing`` the texts that name none. ``named``
    are the kinds that others give to a span that has none of its own.
    """

    of: dict[Span, Sequence[Span]] = field(default_factory=dict)
    missing: dict[Span, Sequence[str]] = field(default_factory=dict)
    named: dict[Span, set[str]] = field(default_factory=dict)

    def kinds(self, span: Span) -> set[str]:
        """Return the kinds of a span: one, or none, or several where those that name it do not agree."""
        kind = _own_kind(span) or _BY_ROLE.get(span.role)
        return self.named.get(span, set()) if kind is None else {kind}


def causes(run: Run) -> Causes:
    """Read what the spans of a run declare. Costs next to nothing where none does."""
    found = Causes()
    for span in run.spans:
        if not _DECLARING.isdisjoint(span.attributes):
            _read(run, span, found)
    return found


def in_order(spans: Iterable[Span]) -> list[Span]:
    """Return spans in an order that does not depend on times."""
    return sorted(spans, key=lambda span: (span.trace_id, span.span_id))


def _read(run: Run, span: Span, found: Causes) -> None:
    known: dict[Span, None] = {}
    missing: list[str] = []
    for text in _entries(native(span.attributes, CAUSED_BY)):
        entry = _ENTRY.fullmatch(text)
        cause = None if entry is None else _find(run, span, int(entry["id"], 16))
        if entry is None or cause is None:
            missing.append(text)
            continue
        known[cause] = None
        if entry["kind"] in KINDS:
            found.named.setdefault(cause, set()).add(entry["kind"])
    found.of[span] = list(known)
    if missing:
        found.missing[span] = missing


def _entries(value: Any) -> Iterator[str]:
    """Yield the causes that an attribute names, as texts."""
    if value is ABSENT or value is None:
        return
    if isinstance(value, str):
        listed = parsed(value) if value.startswith("[") else value.replace(",", " ").split()
        value = [value] if listed is ABSENT else listed
    for item in value if isinstance(value, (list, tuple)) else [value]:
        yield item.strip() if isinstance(item, str) else repr(item)


def _find(run: Run, span: Span, span_id: int) -> Span | None:
    """Return the span of the run with this id: in the trace of whoever names it, else in another of its traces."""
    own = run.by_id.get(span.trace_id, {}).get(span_id)
    if own is not None:
        return own
    others = (run.by_id[trace_id].get(span_id) for trace_id in sorted(run.by_id))
    return next((other for other in others if other is not None), None)


def _own_kind(span: Span) -> str | None:
    kind = span.attributes.get(CAUSE_KIND, ABSENT)
    if kind is ABSENT and native(span.attributes, CAUSED_BY) is not ABSENT:
        kind = native(span.attributes, "kind")
    return kind if isinstance(kind, str) and kind in KINDS else None
