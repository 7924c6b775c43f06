"""Two runs as trees side by side: a place a line, with marks for what came, went and changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from spangate._records import Finding, Span, Verdict
from spangate._run import Run
from spangate._units import duration, shown
from spangate._verdict.text import Part, Style, plain
from spangate.cli._console import style_of
from spangate.cli._tree_report import Rails, by_span, finding_line, head, run_as_json, span_as_json, span_line
from spangate.cli._two_trees import STANDINGS, Pair, Standing, pairs

LEAST_WIDTH: Final = 100
"""A terminal with fewer columns shows one tree, in which both runs stand."""
_MARKS: Final[dict[Standing, tuple[str, Part | None]]] = {
    "same": (" ", None),
    "changed": ("~", "warn"),
    "added": ("+", "pass"),
    "dropped": ("-", "fail"),
}
_BETWEEN: Final = 3
"""Columns between both sides: blank, mark, blank."""


def text_trees(base: tuple[Run, Verdict], here: tuple[Run, Verdict]) -> None:
    """Write two runs side by side; where the terminal is narrow, as one tree."""
    style, width = style_of(sys.stdout), shutil.get_terminal_size((LEAST_WIDTH, 24)).columns
    rails = Rails(sys.stdout.encoding)
    sheet = _Columns(style, rails, width) if width >= LEAST_WIDTH else _Stack(style, rails)
    for line in _heads(base, here, style):
        click.echo(line)
    about, counts = by_span(here[1].findings), Counter[Standing]()
    for pair in pairs(base[0], here[0]):
        counts[pair.standing] += 1
        for line in sheet.lines(pair, about.get(id(pair.here), ())):
            click.echo(line.rstrip())
    click.echo(_summary(counts, style) + "\n")


def _heads(base: tuple[Run, Verdict], here: tuple[Run, Verdict], style: Style) -> Iterator[str]:
    yield style("before", "dim")
    yield from head(*base, style)
    yield style("after", "dim")
    yield from head(*here, style)
    yield ""


def _summary(counts: Counter[Standing], style: Style) -> str:
    differ = [f"{counts[standing]:,} {standing}" for standing in STANDINGS if standing != "same"]
    return style(", ".join([*differ, f"{counts['same']:,} the same"]), "dim")


class _Columns:
    """Both runs in a column each."""

    def __init__(self, style: Style, rails: Rails, width: int) -> None:
        self._style, self._rails = style, rails
        self._side = (width - _BETWEEN) // 2

    def lines(self, pair: Pair, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield the lines of one place."""
        mark, part = _MARKS[pair.standing]
        left, right = self._cell(pair, pair.base), self._cell(pair, pair.here)
        yield f"{self._coloured(left, 'dim' if part is None else part)} {self._coloured(mark, part)} " + self._coloured(
            right, part
        )
        below = " " * (self._side + _BETWEEN) + self._rails.below(pair.lasts)
        for line in _notes(pair, findings, self._style):
            yield below + line

    def _cell(self, pair: Pair, span: Span | None) -> str:
        text = "" if span is None else self._rails.before(pair.lasts, pair.depth) + span_line(span, plain)
        return (text if len(text) <= self._side else text[: self._side - 3] + "...").ljust(self._side)

    def _coloured(self, text: str, part: Part | None) -> str:
        return text if part is None else self._style(text, part)


class _Stack:
    """Both runs in one tree: a span that both have is one line."""

    def __init__(self, style: Style, rails: Rails) -> None:
        self._style, self._rails = style, rails

    def lines(self, pair: Pair, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield the lines of one place."""
        mark, part = _MARKS[pair.standing]
        text = self._rails.before(pair.lasts, pair.depth) + self._said(pair)
        yield f"{mark} {text}" if part is None else self._style(f"{mark} {text}", part)
        below = "  " + self._rails.below(pair.lasts)
        for line in _notes(pair, findings, self._style):
            yield below + line

    def _said(self, pair: Pair) -> str:
        if pair.base is None or pair.here is None:
            return " ".join(span_line(span, plain) for span in (pair.base, pair.here) if span is not None)
        took = " -> ".join(map(_took, (pair.base, pair.here)))
        return f"{pair.here.role} {shown(pair.here.name)}  {took}"


def _notes(pair: Pair, findings: Sequence[Finding], style: Style) -> Iterator[str]:
    """Yield what stands below a place: in what its spans differ, and what was found here."""
    if pair.changed:
        yield style(f"differs in {', '.join(pair.changed)}", "warn")
    for finding in findings:
        yield finding_line(finding, style)


def _took(span: Span) -> str:
    return "open" if span.end_ns is None else duration(span.end_ns - span.start_ns)


def json_trees(base: tuple[Run, Verdict], here: tuple[Run, Verdict]) -> None:
    """Write two runs as one JSON object."""
    before, after = by_span(base[1].findings), by_span(here[1].findings)

    def of(span: Span | None, about: dict[int, list[Finding]]) -> dict[str, Any] | None:
        return None if span is None else span_as_json(span, about.get(id(span), ()))

    places = [
        {
            "depth": pair.depth,
            "standing": pair.standing,
            "changed": pair.changed,
            "a": of(pair.base, before),
            "b": of(pair.here, after),
        }
        for pair in pairs(base[0], here[0])
    ]
    click.echo(json.dumps({"a": run_as_json(base[1]), "b": run_as_json(here[1]), "spans": places}))
