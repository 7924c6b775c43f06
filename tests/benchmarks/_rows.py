"""One line of a benchmark: our figure, the peer's from the same run, and the limit that one of the two is held to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Bound: TypeAlias = Literal["ratio", "figure", "least"]
"""What the limit bounds: our figure over the peer's, our figure from above, or our figure from below."""

_HEADER: Final = ("benchmark", "measured", "spangate", "peer", "peer's", "ratio", "limit", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure. ``ours`` is None where it could not be taken; ``note`` says why, or what else is worth knowing."""

    benchmark: str
    measured: str
    unit: str
    ours: float | None
    peer: str = ""
    theirs: float | None = None
    limit: float | None = None
    bound: Bound = "ratio"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our figure over the peer's."""
        return self.ours / self.theirs if self.ours is not None and self.theirs else None

    @property
    def holds(self) -> bool:
        """True unless there is a limit that was not held."""
        value = self.ratio if self.bound == "ratio" else self.ours
        if self.limit is None:
            return True
        if value is None:
            return False
        return value >= self.limit if self.bound == "least" else value <= self.limit

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON has it."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "ratio": self.ratio, "holds": self.holds}


def table(rows: Iterable[Row]) -> str:
    """Write the rows as plain text, notes below the lines that they belong to."""
    cells = [(_cells(row), row.note) for row in rows]
    widths = [max(len(line[column]) for line in (_HEADER, *(line for line, _ in cells))) for column in range(8)]
    text = [_line(_HEADER, widths)]
    for line, note in cells:
        text.append(_line(line, widths))
        if note:
            text.append(f"{'':{widths[0]}}  {note}")
    return "\n".join(text)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    right = {2, 4, 5, 6}
    columns = [
        cell.rjust(width) if number in right else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(columns).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    sign = ">=" if row.bound == "least" else "<="
    limit = "" if row.limit is None else f"{'ratio ' if row.bound == 'ratio' else ''}{sign} {_number(row.limit)}"
    state = "" if row.limit is None else "holds" if row.holds else "FALLS SHORT"
    figures = (_figure(row.ours, row.unit), row.peer, _figure(row.theirs, row.unit))
    return (row.benchmark, row.measured, *figures, ratio, limit, state)


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
