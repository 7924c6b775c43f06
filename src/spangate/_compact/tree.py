"""Two hashes over the compact spans of a run, which tell whether two runs differ in what was said or in its shape.

Neither holds an id or a time. Both hold the names of the spans with their effective status and what is below what;
siblings count in no order, since which of those that run side by side starts first is chance. Where the schema hashes
of two runs are equal and the hashes are not, the data differ; where the schema hashes differ, the contract does: other
steps, another outcome, or payloads of another shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from spangate import _keys as keys
from spangate._canonical import canonical_hash
from spangate._compact.form import compact
from spangate._compact.names import EXCEPTION_TEXTS, STATUS_DESCRIPTION
from spangate._dialects import dialect_of
from spangate._records import Span

Telling: TypeAlias = Callable[[Span], list[Any]]

_NOT_SAID = frozenset(keys.PAYLOAD_SHA256 + text for text in (*EXCEPTION_TEXTS, STATUS_DESCRIPTION))
"""Texts of errors hold paths and addresses; that there was one stands in the status."""


def tree_hash(spans: Iterable[Span]) -> str:
    """Hash the spans of a run: their names, outcomes, nesting, and what was said (16 hex digits).

    Spans may be whole or compact. Texts of errors do not count.
    """
    return hash_of_compact([compact(span) for span in spans])


def tree_schema_hash(spans: Iterable[Span]) -> str:
    """Hash the same, with the shapes of the payloads instead of what they say (16 hex digits)."""
    return schema_hash_of_compact([compact(span) for span in spans])


def hash_of_compact(spans: Sequence[Span]) -> str:
    """Hash spans that are compact already, as :func:`tree_hash` does."""
    return _hash(spans, lambda span: _said(span, keys.PAYLOAD_SHA256, keys.PAYLOAD_SCHEMA))


def schema_hash_of_compact(spans: Sequence[Span]) -> str:
    """Hash spans that are compact already, as :func:`tree_schema_hash` does."""
    return _hash(spans, lambda span: _said(span, keys.PAYLOAD_SCHEMA))


def _said(span: Span, *prefixes: str) -> list[Any]:
    """Return name, outcome and the hashes that stand under ``prefixes``, those of each event apart."""
    told = [span.attributes, *(event.attributes for event in span.events)]
    hashes = [
        sorted(
            [key, value]
            for key, value in attributes.items()
            if key.startswith(prefixes) and key not in _NOT_SAID and isinstance(value, str)
        )
        for attributes in told
    ]
    outcome = span.attributes.get(keys.OUTCOME) or dialect_of(span).outcome(span)
    return [span.name, outcome, hashes[0], sorted(filter(None, hashes[1:]))]


def _hash(spans: Sequence[Span], telling: Telling) -> str:
    """Hash from the leaves up: each span with the hashes of its children, sorted."""
    places = {(span.trace_id, span.span_id): place for place, span in reversed([*enumerate(spans)])}
    parents = [places.get((span.trace_id, span.parent_id or 0)) for span in spans]
    waiting = [0] * len(spans)
    for parent in parents:
        if parent is not None:
            waiting[parent] += 1
    below: dict[int, list[str]] = {}
    tops: list[str] = []
    ready = [place for place, children in enumerate(waiting) if not children]
    done = 0
    while ready:
        place = ready.pop()
        done += 1
        known = canonical_hash([*telling(spans[place]), sorted(below.pop(place, ()))])
        parent = parents[place]
        if parent is None:
            tops.append(known)
            continue
        below.setdefault(parent, []).append(known)
        waiting[parent] -= 1
        if not waiting[parent]:
            ready.append(parent)
    left = () if done == len(spans) else [place for place, children in enumerate(waiting) if children]
    tops += [
        canonical_hash([*telling(spans[place]), spans[parents[place] or 0].name, sorted(below.get(place, ()))])
        for place in left
    ]  # a circle of parents has no leaf to begin at
    return canonical_hash(sorted(tops))
