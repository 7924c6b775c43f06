"""A run as a tree beside its time line: a bar a span, its own time, and the holes that nothing accounts for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Final

import click

from spangate._records import Verdict
from spangate._run import Run
from spangate._timing import Hole, Times, times
from spangate._units import counted, duration, shown
from spangate._verdict.text import Style
from spangate.cli._console import style_of
from spangate.cli._timing_report import between, longest, timing_text
from spangate.cli._tree_report import Rails, Row, by_span, finding_line, head, rows

_LEAST_BAR: Final = 20
_FIGURE: Final = 9
"""Columns of a duration: ``999.9 min``."""
_MOST_LABEL: Final = 60


def timed_tree(run: Run, verdict: Verdict) -> None:
    """Write a run, its verdict and its time line. Without a wall clock there is no line, and that is said."""
    account = run.remember(times)
    style = style_of(sys.stdout)
    for line in head(run, verdict, style):
        click.echo(line)
    click.echo(timing_text(account, style))
    chart = _Chart(account, style, sys.stdout.encoding)
    rails, about = Rails(sys.stdout.encoding), by_span(verdict.findings)
    holes = chart.holes_by_place()
    click.echo(chart.heading())
    for row in rows(run):
        for hole in holes.pop(id(row.span), ()):
            click.echo(chart.of_hole(hole, rails.beside(row.lasts)))
        click.echo(chart.of_row(row, rails.before(row.lasts, row.depth)))
        for finding in about.get(id(row.span), ()):
            click.echo(rails.below(row.lasts) + finding_line(finding, style))
    for left in holes.values():
        for hole in left:
            click.echo(chart.of_hole(hole))
    for line in chart.last_words():
        click.echo(line)
    click.echo()


class _Chart:
    """Draws bars over the time line of one run, as wide as the terminal allows."""

    def __init__(self, account: Times, style: Style, encoding: str | None) -> None:
        self._account = account
        self._style = style
        width = shutil.get_terminal_size((100, 24)).columns
        self._label = min(_MOST_LABEL, max(24, width - 2 * _FIGURE - 2 - max(_LEAST_BAR, width // 3)))
        self._bar = max(_LEAST_BAR, width - self._label - 2 * _FIGURE - 3)
        self._shown = longest(account.holes)
        try:
            "━┅".encode(encoding or "ascii")
            self._solid, self._hollow = "━", "┅"
        except UnicodeEncodeError:
            self._solid, self._hollow = "=", "."

    def holes_by_place(self) -> dict[int, list[Hole]]:
        """Return the holes that are shown by the identity of the span that each stands before; 0: at the end."""
        found: dict[int, list[Hole]] = {}
        for hole in self._shown:
            found.setdefault(0 if hole.after is None else id(hole.after), []).append(hole)
        return found

    def heading(self) -> str:
        """Return the names of the columns."""
        begin, end = "0", duration(self._account.wall_ns)
        scale = begin + end.rjust(self._bar - len(begin))
        return self._style(f"{' ' * self._label} {'took':>{_FIGURE}}{'own':>{_FIGURE}} {scale}", "dim")

    def of_row(self, row: Row, before: str) -> str:
        """Return the line of a span."""
        span = row.span
        label = _cut(f"{before}{span.role} {shown(span.name)}", self._label)
        if span.end_ns is None:
            return f"{label} {self._style('open'.rjust(_FIGURE), 'fail')}"
        own = self._account.exclusive_ns.get(id(span))
        figures = duration(span.end_ns - span.start_ns).rjust(_FIGURE)
        figures += (" " * _FIGURE) if own is None else self._style(duration(own).rjust(_FIGURE), "dim")
        return f"{label} {figures} {self._between(span.start_ns, span.end_ns, self._solid)}".rstrip()

    def of_hole(self, hole: Hole, before: str = "") -> str:
        """Return the line of a hole."""
        label = _cut(f"{before}untraced, {between(hole)}", self._label)
        bar = self._between(hole.start_ns, hole.end_ns, self._hollow)
        return self._style(f"{label} {duration(hole.length_ns).rjust(_FIGURE)}{' ' * _FIGURE} {bar}".rstrip(), "warn")

    def last_words(self) -> Iterator[str]:
        """Yield what is not drawn."""
        rest = len(self._account.holes) - len(self._shown)
        if rest > 0:
            drawn = sum(hole.length_ns for hole in self._shown)
            lost = duration(self._account.untraced_ns - drawn)
            yield self._style(f"  and {counted(rest, 'shorter hole')}, {lost} together", "dim")

    def _between(self, start_ns: int, end_ns: int, mark: str) -> str:
        """Return a bar at its place; whatever is too short for one column has a column all the same."""
        begin, wall_ns = self._account.wall[0], self._account.wall_ns
        if not wall_ns:
            return ""
        first = min(max(0, (start_ns - begin) * self._bar // wall_ns), self._bar - 1)
        last = min(max(first + 1, -(-(end_ns - begin) * self._bar // wall_ns)), self._bar)
        return " " * first + mark * (last - first)


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 3] + "...").ljust(width)
