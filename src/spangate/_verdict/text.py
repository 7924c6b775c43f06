"""A verdict as plain text for a tired person: what failed, where, what to do; then warnings; then what nobody knows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from spangate._records import Finding, Span, Verdict
from spangate._run import Run
from spangate._units import counted, shown
from spangate._verdict.advice import ADVICE

Part: TypeAlias = Literal["pass", "fail", "warn", "gap", "dim"]
Style: TypeAlias = Callable[[str, Part], str]
"""Takes a piece of text and what it is, and returns it with or without colour. The length it shows must not change."""

MAX_PLACES: Final = 3
MAX_CODES: Final = 20
MAX_DEPTH: Final = 6
_DETAIL: Final = 300
_BRIEF: Final = 160
_WIDTH: Final = 100


def plain(text: str, _part: Part) -> str:
    """Return the text as it is: the style of files and pipes."""
    return text


def verdict_text(verdict: Verdict, run: Run | None = None, *, style: Style = plain) -> str:
    """Write a verdict over several lines, without a line break at the end.

    Args:
        verdict: The verdict.
        run: The run that was judged; with it the text says where in the tree each failing span stands.
        style: Colours the pieces.

    Returns:
        Text that UTF-8 can write and that moves no cursor, whatever the spans are called.
    """
    return "\n".join(_lines(verdict, run, style))


def one_line(verdict: Verdict) -> str:
    """Write a verdict on one line, for a log."""
    failures, warnings = len(verdict.failures), len(verdict.warnings)
    head = f"{verdict.verdict}: {shown(verdict.run_name)} (run {shown(verdict.run_id)})"
    more = [counted(warnings, "warning")] if warnings else []
    if failures:
        first = verdict.findings[0]
        where = f" at {shown(first.span.name)}" if first.span else ""
        head += f": {shown(first.code)}{where}" + (f": {shown(first.detail, _BRIEF)}" if first.detail else "")
        more = [f"{failures - 1:,} more", *more] if failures > 1 else more
    else:
        more = [counted(verdict.totals.spans_started, "span"), *more]
    return "; ".join([head, *more])


def _lines(verdict: Verdict, run: Run | None, style: Style) -> Iterator[str]:
    yield f"{style(verdict.verdict.upper(), verdict.verdict)}  {shown(verdict.run_name)}"
    yield style(f"      {_totals(verdict)}", "dim")
    failures = _grouped(verdict.failures)
    for code, findings in failures[:MAX_CODES]:
        yield ""
        yield from _failure(code, findings, run, style)
    yield from _cut(len(failures), style)
    if verdict.warnings:
        yield from ("", "warnings")
        yield from _shorter(verdict.warnings, "warn", style)
    if verdict.gaps:
        yield from ("", "not evaluable")
        yield from _shorter(verdict.gaps, "gap", style)
    yield ""
    yield style(_reference(verdict), "dim")


def _failure(code: str, findings: Sequence[Finding], run: Run | None, style: Style) -> Iterator[str]:
    """Write what failed, the first places where it did, and what to do."""
    advice = ADVICE.get(code)
    yield _head(code, findings, "fail", style) + (f": {advice.meaning}" if advice else "")
    for finding in findings[:MAX_PLACES]:
        if finding.span is not None:
            yield f"    where  {_path(finding.span, run)}"
        if finding.detail:
            yield f"    what   {shown(finding.detail, _DETAIL)}"
    if len(findings) > MAX_PLACES:
        yield style(f"    and {len(findings) - MAX_PLACES:,} more", "dim")
    if advice:
        yield from textwrap.wrap(advice.do, _WIDTH, initial_indent="    do     ", subsequent_indent=" " * 11)


def _shorter(findings: Iterable[Finding], part: Part, style: Style) -> Iterator[str]:
    """Write one line a code: how often, where first, and why."""
    grouped = _grouped(findings)
    for code, same in grouped[:MAX_CODES]:
        first = same[0]
        said = [shown(first.span.name)] if first.span else []
        said += [shown(first.detail, _DETAIL)] if first.detail else []
        yield f"  {_head(code, same, part, style)}" + (f"  {': '.join(said)}" if said else "")
    yield from _cut(len(grouped), style)


def _head(code: str, findings: Sequence[Finding], part: Part, style: Style) -> str:
    return style(shown(code), part) + (f" ({len(findings):,})" if len(findings) > 1 else "")


def _cut(codes: int, style: Style) -> Iterator[str]:
    if codes > MAX_CODES:
        yield style(f"  and {counted(codes - MAX_CODES, 'more code')}", "dim")


def _path(span: Span, run: Run | None) -> str:
    """Write the way from the root to the span, cut in the middle, and the span's role and id."""
    way = [span, *run.ancestors(span)][::-1] if run is not None else [span]
    names = [shown(one.name) for one in way]
    if run is not None and way[0] is not run.root:
        names.insert(0, shown(run.root.name) if run.root.role == "entry" else "(outside the tree)")
    if len(names) > MAX_DEPTH:
        names[2 : len(names) - MAX_DEPTH + 3] = ["..."]
    return f"{' > '.join(names)}  [{span.role} {span.hex_id}]"


def _totals(verdict: Verdict) -> str:
    totals = verdict.totals
    tokens = (("input", totals.input_tokens), ("output", totals.output_tokens))
    said = [f"{totals.spans_ended:,} of {counted(totals.spans_started, 'span')} ended"]
    said += [
        f"{side} tokens unknown" if number is None else counted(number, f"{side} token") for side, number in tokens
    ]
    if totals.tool_payload_bytes is not None:
        said.append(f"{counted(totals.tool_payload_bytes, 'byte')} from tools")
    return ", ".join(said)


def _reference(verdict: Verdict) -> str:
    """Write what one quotes to find the run, its policy and its fault again."""
    said = [f"run {shown(verdict.run_id)}", f"trace {verdict.root.hex_trace_id}", f"trigger {verdict.trigger}"]
    said += [f"cluster {verdict.cluster}"] if verdict.cluster else []
    said += [f"policy {verdict.policy}"]
    said += [f"supersedes {verdict.supersedes}"] if verdict.supersedes else []
    return ", ".join(said)


def _grouped(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Gather findings by code, codes and findings in the order in which they came."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    return list(groups.items())
