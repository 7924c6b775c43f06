"""The tree of a run and the details of its spans, as data in the page, as long as there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from spangate._records import Verdict
from spangate._run import Run
from spangate._timing import Times, times
from spangate.cli._report.details import Details
from spangate.cli._report.embedded import as_data
from spangate.cli._report.texts import Texts
from spangate.cli._report.tree import Columns, Row, begin_of
from spangate.compare import Difference

CHUNK: Final = 128
"""So many spans' details are read from the page at once, when the first of them is asked for."""
_NONE: Final = Markup("null")


@dataclass
class Room:
    """How much the page may still hold: rows of trees, and characters of details."""

    rows: int = 100_000
    details: int = 48 << 20


@dataclass(frozen=True)
class Judged:
    """A run with its verdict, and the difference to the run that it is compared with, if there is one."""

    run: Run
    verdict: Verdict
    difference: Difference | None = None

    @property
    def base(self) -> Run | None:
        """The run that it is compared with."""
        return None if self.difference is None else self.difference.a


class Writer:
    """Writes the tree of one run, and the details of its spans, as data for the scripts."""

    def __init__(self, judged: Judged, texts: Texts) -> None:
        self._texts = texts
        self._here = judged.run.remember(times)
        self._base = None if judged.base is None else judged.base.remember(times)
        self._of_here = Details(texts, begin_of(self._here, judged.run.spans))
        self._of_base = Details(texts, 0 if judged.base is None else begin_of(self._base or Times(), judged.base.spans))

    def tree(self, shown: Sequence[Row]) -> dict[str, Any]:
        """Return the columns, with what the spans were recorded by; to be asked after the details."""
        resources = {"here": self._of_here.resources, "base": self._of_base.resources}
        return {**Columns(self._texts).of(shown, self._here, self._base), "resources": resources, "chunk": CHUNK}

    def chunks(self, shown: Sequence[Row], first: Iterable[int], room: Room) -> tuple[list[Markup], int]:
        """Return the details of the rows in chunks, and of how many there was no room; those of ``first`` go first."""
        told: dict[int, Markup] = {}
        for place in dict.fromkeys((*first, *range(len(shown)))):
            if room.details <= 0:
                break
            told[place] = as_data(self._details(shown[place]))
            room.details -= len(told[place])
        chunks = [
            Markup("[{}]").format(Markup(",").join(told.get(place, _NONE) for place in range(start, start + CHUNK)))
            for start in range(0, len(shown), CHUNK)
        ]
        return chunks, len(shown) - len(told)

    def _details(self, row: Row) -> dict[str, Any]:
        sides = (("here", row.here, self._of_here), ("base", row.base, self._of_base))
        return {side: details.of(span) for side, span, details in sides if span is not None}
