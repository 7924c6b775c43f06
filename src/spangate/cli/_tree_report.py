"""A run as a tree: a line a span, with the findings about it below."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from spangate._dialects import dialect_of
from spangate._records import ABSENT, Finding, Span, Verdict
from spangate._run import Run
from spangate._timing import times
from spangate._units import counted, duration, shown
from spangate._verdict.text import Part, Style
from spangate.cli._console import style_of
from spangate.cli._timing_report import timing_json

MAX_RAILS: Final = 24
"""How far a tree is indented; what lies deeper stands below one another, with its depth."""

_DETAIL: Final = 160
_MARKS: Final[dict[str, tuple[str, Part]]] = {"fail": ("x", "fail"), "warn": ("!", "warn")}


@dataclass(frozen=True)
class Row:
    """One span of a tree. ``lasts`` tells of it and of each span above it, below the root, if it is the last child."""

    span: Span
    depth: int
    lasts: tuple[bool, ...]


def rows(run: Run) -> Iterator[Row]:
    """Yield the spans of a run in the order of the tree, each once: the root's, then those that hang elsewhere."""
    seen: set[int] = set()
    for top in _tops(run):
        waiting = [Row(top, 0, ())]
        while waiting:
            row = waiting.pop()
            if id(row.span) in seen:
                continue
            seen.add(id(row.span))
            yield row
            children = run.children_of(row.span)
            waiting += [
                Row(child, row.depth + 1, (*row.lasts, place == len(children))[:MAX_RAILS])
                for place, child in reversed(list(enumerate(children, 1)))
            ]


def _tops(run: Run) -> Iterator[Span]:
    """Yield the root, then what has no parent here, then everything: what is left by then is a cycle of parents."""
    yield run.root
    yield from (span for span in run.spans if run.parent_of(span) is None)
    yield from run.spans


def text_tree(run: Run, verdict: Verdict) -> None:
    """Write a run and its verdict as a tree."""
    style = style_of(sys.stdout)
    about = by_span(verdict.findings)
    for line in head(run, verdict, style):
        click.echo(line)
    rails = Rails(sys.stdout.encoding)
    for row in rows(run):
        click.echo(rails.before(row.lasts, row.depth) + span_line(row.span, style))
        for finding in about.get(id(row.span), ()):
            click.echo(rails.below(row.lasts) + finding_line(finding, style))
    click.echo()


def head(run: Run, verdict: Verdict, style: Style) -> Iterator[str]:
    """Yield what stands above a tree: the verdict, which run it is, and the findings that no span in it has."""
    here = {id(span) for span in run.spans}
    yield f"{style(verdict.verdict.upper(), verdict.verdict)}  {shown(verdict.run_name)}"
    yield style(f"run {shown(verdict.run_id)}, trace {verdict.root.hex_trace_id}, {_size(verdict)}", "dim")
    for finding in verdict.findings:
        if finding.span is None or id(finding.span) not in here:
            yield finding_line(finding, style)


def _size(verdict: Verdict) -> str:
    ended = verdict.totals.spans_ended
    return counted(verdict.totals.spans_started, "span") + (
        "" if ended == verdict.totals.spans_started else f", {ended:,} of them ended"
    )


class Rails:
    """Draws what joins the lines of a tree, in ASCII where the stream cannot write more."""

    def __init__(self, encoding: str | None) -> None:
        try:
            "├─└│".encode(encoding or "ascii")
            self._branch, self._last, self._through = "├─ ", "└─ ", "│  "
        except UnicodeEncodeError:
            self._branch, self._last, self._through = "|- ", "`- ", "|  "

    def before(self, lasts: Sequence[bool], depth: int) -> str:
        """Return what stands before a span's line; ``lasts`` as in :class:`Row`."""
        if not lasts:
            return ""
        deep = f"[{depth}] " if depth > MAX_RAILS else ""
        return self._rails(lasts[:-1]) + (self._last if lasts[-1] else self._branch) + deep

    def below(self, lasts: Sequence[bool]) -> str:
        """Return what stands before a line about the span."""
        return self._rails(lasts) + "   "

    def beside(self, lasts: Sequence[bool]) -> str:
        """Return what stands before a line of its own above the span's."""
        return self._rails(lasts[:-1])

    def _rails(self, lasts: Iterable[bool]) -> str:
        return "".join("   " if last else self._through for last in lasts)


def span_line(span: Span, style: Style) -> str:
    """Write a span on one line: what it is, how long it took, what it used, and what became of it."""
    parts = [f"{style(span.role, 'dim')} {shown(span.name)}"]
    if span.end_ns is None:
        parts.append(style("open", "fail"))
    else:
        parts.append(style(duration(span.end_ns - span.start_ns), "dim"))
    usage = dialect_of(span).usage(span)
    sides = ((usage.input, "in"), (usage.output, "out"))
    tokens = ", ".join(f"{shown(str(number))} {side}" for number, side in sides if number is not ABSENT)
    if tokens:
        parts.append(tokens if span.role == "generation" else f"sum {tokens}")
    outcome = dialect_of(span).outcome(span)
    if outcome != "ok":
        parts.append(style(outcome, "warn" if outcome in ("cancelled", "control_flow") else "fail"))
    return "  ".join(parts)


def finding_line(finding: Finding, style: Style) -> str:
    """Write a finding on one line."""
    mark, part = _MARKS.get(finding.level or "", ("?", "gap"))
    detail = f": {shown(finding.detail, _DETAIL)}" if finding.detail else ""
    return style(f"{mark} {shown(finding.code)}", part) + detail


def by_span(findings: Sequence[Finding]) -> dict[int, list[Finding]]:
    """Return findings by the identity of their span."""
    found: dict[int, list[Finding]] = {}
    for finding in findings:
        found.setdefault(id(finding.span), []).append(finding)
    return found


def json_tree(run: Run, verdict: Verdict) -> None:
    """Write a run and its verdict as one JSON object."""
    click.echo(json.dumps(tree_as_json(run, verdict)))


def timed_json_tree(run: Run, verdict: Verdict) -> None:
    """Write the same, with each span's own time and the holes of the run."""
    account = run.remember(times)
    written = tree_as_json(run, verdict)
    for row, told in zip(rows(run), written["spans"], strict=True):
        told["exclusive_ns"] = account.exclusive_ns.get(id(row.span))
    click.echo(json.dumps({**written, "timing": timing_json(account)}))


def tree_as_json(run: Run, verdict: Verdict) -> dict[str, Any]:
    """Return what JSON says of a run and its verdict."""
    about = by_span(verdict.findings)
    return {
        **run_as_json(verdict),
        "spans": [{"depth": row.depth, **span_as_json(row.span, about.get(id(row.span), ()))} for row in rows(run)],
    }


def run_as_json(verdict: Verdict) -> dict[str, Any]:
    """Return what JSON says of a run without its spans."""
    return {
        "run_id": verdict.run_id,
        "trace_id": verdict.root.hex_trace_id,
        "root": verdict.run_name,
        "verdict": verdict.verdict,
    }


def span_as_json(span: Span, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what JSON says of a span and of what was found about it."""
    usage = dialect_of(span).usage(span)
    return {
        "span_id": span.hex_id,
        "parent_id": None if span.parent_id is None else format(span.parent_id, "016x"),
        "role": span.role,
        "name": span.name,
        "start_ns": span.start_ns,
        "duration_ns": None if span.end_ns is None else span.end_ns - span.start_ns,
        "outcome": dialect_of(span).outcome(span),
        "input_tokens": plain_number(usage.input),
        "output_tokens": plain_number(usage.output),
        "findings": [finding.code for finding in findings],
    }


def plain_number(value: Any) -> int | float | str | None:
    """Return a recorded number as JSON can hold it: what is no number stays visible as text."""
    if value is None or value is ABSENT:
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return str(value)
