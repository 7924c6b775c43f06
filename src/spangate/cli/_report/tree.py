"""The tree of a run as columns, one entry a row: small enough that a page holds a hundred thousand of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run
from spangate._timing import Hole, Times, times
from spangate._units import duration
from spangate.cli._report.texts import Texts
from spangate.cli._timing_report import between, longest
from spangate.cli._tree_report import plain_number, rows
from spangate.cli._two_trees import STANDINGS, Pair, Standing, pairs

MAX_HOLES: Final = 50
"""So many holes are drawn, the longest."""
_MOST_EXACT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Row:
    """A row: a span of the run, and of the run that it is compared with; one of them may be None.

    ``folded`` counts the rows below it that were left out.
    """

    depth: int
    here: Span | None
    base: Span | None = None
    standing: Standing = "same"
    changed: tuple[str, ...] = ()
    folded: int = 0

    @property
    def span(self) -> Span:
        """The span that the row is called by."""
        found = self.here or self.base
        assert found is not None  # noqa: S101  a row stands for a span of either run
        return found


def rows_of(run: Run, base: Run | None) -> Iterator[Row]:
    """Yield all rows of a run, or of a run and the one that it is compared with, in the order of the tree."""
    if base is None:
        yield from (Row(row.depth, row.span) for row in rows(run))
        return
    yield from map(_row, pairs(base, run))


def _row(pair: Pair) -> Row:
    return Row(pair.depth, pair.here, pair.base, pair.standing, pair.changed)


def folded(found: Sequence[Row], most: int, wanted: Iterable[Span]) -> list[Row]:
    """Return at most ``most`` of the rows: those with ``wanted`` spans, or changes, and what is above them first.

    What is left out is counted on the nearest row above it that is kept.
    """
    if len(found) <= most:
        return [*found]
    above = _parents(found)
    kept = _kept(found, above, most, {id(span) for span in wanted})
    nearest: list[int] = []
    left_out: dict[int, int] = {}
    for place, parent in enumerate(above):
        nearest.append(place if place in kept else nearest[parent])
        if place not in kept:
            left_out[nearest[-1]] = left_out.get(nearest[-1], 0) + 1
    return [replace(found[place], folded=left_out.get(place, 0)) for place in sorted(kept)]


def _parents(found: Sequence[Row]) -> list[int]:
    """Return the place of the row above each row; -1 counts for the very first, which is never left out."""
    above: list[int] = []
    way: list[int] = []
    for place, row in enumerate(found):
        del way[row.depth :]
        above.append(way[-1] if way else -1)
        way.append(place)
    return above


def _kept(found: Sequence[Row], above: Sequence[int], most: int, wanted: set[int]) -> set[int]:
    kept = {0}
    for place, row in enumerate(found):
        if id(row.here) in wanted or row.standing != "same":
            way = [*_way_up(place, above, kept)]
            if len(kept) + len(way) <= most:
                kept.update(way)
    by_height = sorted(range(len(found)), key=lambda place: found[place].depth)
    for place in by_height:
        if len(kept) >= most:
            break
        kept.add(place)
    return kept


def _way_up(place: int, above: Sequence[int], kept: set[int]) -> Iterator[int]:
    while place >= 0 and place not in kept:
        yield place
        place = above[place]


class Columns:
    """Writes rows as columns; texts that come again stand there once, as numbers of a list."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._numbers: dict[str, int] = {}

    def of(self, shown: Sequence[Row], here: Times, base: Times | None) -> dict[str, Any]:
        """Return the columns of the rows, with times from the begin of each run."""
        written: dict[str, Any] = {
            "depth": [row.depth for row in shown],
            "role": [self._number(row.span.role) for row in shown],
            "name": [self._number(self._texts.name(row.span.name)) for row in shown],
            "id": [row.span.hex_id for row in shown],
            "folded": {str(place): row.folded for place, row in enumerate(shown) if row.folded},
            **self._side([row.here for row in shown], here),
        }
        if base is not None:
            written["standing"] = [STANDINGS.index(row.standing) for row in shown]
            written["changed"] = {str(place): row.changed for place, row in enumerate(shown) if row.changed}
            written["base"] = self._side([row.base for row in shown], base)
        return {**written, "texts": [*self._numbers]}

    def _side(self, spans: Sequence[Span | None], account: Times) -> dict[str, Any]:
        begin = begin_of(account, spans)
        usages = [None if span is None else dialect_of(span).usage(span) for span in spans]
        return {
            "start": [None if span is None else span.start_ns - begin for span in spans],
            "took": [None if span is None or span.end_ns is None else span.end_ns - span.start_ns for span in spans],
            "own": [None if span is None else account.exclusive_ns.get(id(span)) for span in spans],
            "outcome": [None if span is None else self._number(_outcome(span)) for span in spans],
            "input": [None if usage is None else self._count(usage.input) for usage in usages],
            "output": [None if usage is None else self._count(usage.output) for usage in usages],
        }

    def _count(self, recorded: Any) -> int | float | str | None:
        """Return a token count; one that is no number, or more than a script can hold exactly, as text."""
        count = plain_number(recorded)
        return self._texts.name(str(count)) if isinstance(count, str) or (count and abs(count) > _MOST_EXACT) else count

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def _outcome(span: Span) -> str:
    return "open" if span.end_ns is None else dialect_of(span).outcome(span)


def begin_of(account: Times, spans: Iterable[Span | None]) -> int:
    """Return when a run began, in nanoseconds since the epoch: its clock's begin, else the first of its starts."""
    return account.wall[0] or min((span.start_ns for span in spans if span is not None), default=0)


def holes_of(run: Run, texts: Texts) -> list[Mapping[str, Any]]:
    """Return the longest stretches of untraced time, from the begin of the run."""
    account = run.remember(times)
    begin = account.wall[0]
    return [
        {"start": hole.start_ns - begin, "length": hole.length_ns, "words": _words(hole, texts)}
        for hole in longest(account.holes, MAX_HOLES)
    ]


def _words(hole: Hole, texts: Texts) -> str:
    return f"{duration(hole.length_ns)} untraced, {texts.name(between(hole))}"
