"""Tools that write the same path, and which of them no path of causes puts in order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from spangate._causes import in_order
from spangate._causes.graph import reaching
from spangate._dialects import dialect_of
from spangate._dialects._values import parsed_object
from spangate._dialects.native import native
from spangate._lineage import LookUp
from spangate._records import Span
from spangate._run import Run

MAX_WRITERS: Final = 1024
"""Of a path with more writers the order is not looked at."""
MAX_PASSES: Final = 16
"""So many times the graph of a run is gone through at most, each time for as many writers."""

_PATHS: Final = frozenset({"path", "agent.path"})
_READS: Final = frozenset({"read", "list", "stat", "search", "exists", "open"})


class Writer(NamedTuple):
    """A span that writes, and the span whose causes count for it: itself, or the call that it was made for."""

    span: Span
    anchor: Span
    name: str


class Contest(NamedTuple):
    """Writers of one path in the order of their ids, each with an anchor of its own.

    ``unknown`` is how many more spans write it whose causes nobody knows.
    """

    path: str
    writers: Sequence[Writer]
    unknown: int


class Unordered(NamedTuple):
    """Two writers of one path that are in no order, and how many such pairs there are."""

    path: str
    first: Writer
    second: Writer
    pairs: int


def written_paths(span: Span, writers: Mapping[str, str]) -> Iterator[str]:
    """Yield what a span writes: what it says in ``op`` and ``path``, or an argument of a tool among ``writers``."""
    attributes = span.attributes
    path, operation = native(attributes, "path"), native(attributes, "op")
    if isinstance(path, str) and isinstance(operation, str) and operation.lower() not in _READS and path:
        yield posixpath.normpath(path)
    elif writers and span.role == "tool":
        call = dialect_of(span).tool_call(span)
        argument = writers.get(call.name or span.name)
        given = None if argument is None else parsed_object(call.arguments).get(argument)
        if isinstance(given, str) and given:
            yield posixpath.normpath(given)


def writers_of(run: Run, tables: Mapping[str, str]) -> dict[str, list[Span]]:
    """Return the paths that more than one span of a run writes, with these spans."""
    found: dict[str, list[Span]] = {}
    for span in run.spans:
        if tables or not _PATHS.isdisjoint(span.attributes):
            for path in written_paths(span, tables):
                found.setdefault(path, []).append(span)
    return {path: spans for path, spans in found.items() if len(spans) > 1}


def contest(path: str, spans: Sequence[Span], has_causes: Mapping[Span, object], above: LookUp) -> Contest:
    """Put the writers of a path beside each other whose causes are known; of those of one call one stands for all."""
    by_anchor: dict[Span, Writer] = {}
    unknown = 0
    for span in in_order(spans):
        anchor = span if span in has_causes else above(span)
        if anchor is None:
            unknown += 1
        else:
            name = dialect_of(span).tool_call(span).name or span.name
            by_anchor.setdefault(anchor, Writer(span, anchor, name))
    return Contest(path, list(by_anchor.values()), unknown)


def batches(contests: Sequence[Contest]) -> Iterator[list[Contest]]:
    """Divide contests into those that are looked at in one pass."""
    batch: list[Contest] = []
    held = 0
    for one in contests:
        if batch and held + len(one.writers) > MAX_WRITERS:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += len(one.writers)
    if batch:
        yield batch


def unordered(
    batch: Sequence[Contest],
    order: Sequence[Span],
    effects: Mapping[Span, Sequence[Span]],
    commutative: frozenset[str],
) -> Iterator[Unordered]:
    """Yield the paths whose writers are not all in order."""
    anchors = dict.fromkeys(writer.anchor for one in batch for writer in one.writers)
    bits = {anchor: 1 << number for number, anchor in enumerate(anchors)}
    before = reaching(order, effects, bits)
    for one in batch:
        pairs = [
            (first, second)
            for first, second in combinations(one.writers, 2)
            if not (before[first.anchor] & bits[second.anchor] or before[second.anchor] & bits[first.anchor])
            and not (first.name in commutative and second.name in commutative)
        ]
        if pairs:
            yield Unordered(one.path, *pairs[0], len(pairs))
