"""What ``spangate compare`` says: a table of model calls for people, and JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from spangate._records import Span
from spangate._run import Run
from spangate._units import counted, shown
from spangate._verdict.text import Style
from spangate.cli._console import NO_RUN, PASSED, UNREADABLE, style_of
from spangate.cli._two_recordings import Runs, alone
from spangate.compare._generations import REASONS, Comparison, Pair

_MAX_PAIRS: Final = 40
_HOW: Final = {"generation_id": "by generation_id", "position": "by position"}


def exit_code(found: Comparison | None) -> int:
    """Return the exit code for two runs; None stands for a run without a counterpart."""
    if found is None:
        return UNREADABLE
    if "no_generations" in found.reasons:
        return NO_RUN
    return PASSED if found.comparable else UNREADABLE


def write_json(runs: Runs, found: Comparison | None, files: tuple[str, str]) -> None:
    """Write one object on one line."""
    told: dict[str, Any] = {"run_a": _run_json(runs.a), "run_b": _run_json(runs.b)}
    if found is None:
        told |= {"comparable": False, "reasons": ["count"], "detail": alone(runs, *files), "pairs": []}
    else:
        told |= {
            "comparable": found.comparable,
            "reasons": list(found.reasons),
            "joined_by": found.joined_by,
            "declared_models": list(found.declared),
            "other_path": found.path,
            "pairs": [_pair_json(pair) for pair in found.pairs],
        }
    click.echo(json.dumps(told))


def _run_json(run: Run | None) -> dict[str, Any] | None:
    return None if run is None else {"run_id": run.run_id, "root": run.name}


def _pair_json(pair: Pair) -> dict[str, Any]:
    span = pair.a or pair.b
    return {
        "name": None if span is None else span.name,
        "span_a": None if pair.a is None else pair.a.hex_id,
        "span_b": None if pair.b is None else pair.b.hex_id,
        "first": pair.first,
        "results": list(pair.results),
    }


def write_text(runs: Runs, found: Comparison | None, files: tuple[str, str]) -> None:
    """Write a paragraph: the answer first, then why, then the calls."""
    style = style_of(sys.stdout)
    click.echo("\n".join(_lines(runs, found, files, style)))


def _lines(runs: Runs, found: Comparison | None, files: tuple[str, str], style: Style) -> Sequence[str]:
    if found is None:
        return [f"{style('incomparable', 'fail')} {runs.name}", f"  count: {alone(runs, *files)}"]
    lines = [f"{style(*(('comparable', 'pass') if found.comparable else ('incomparable', 'fail')))} {runs.name}"]
    lines += [f"  {style(reason, 'fail')}: {REASONS[reason]}" for reason in found.reasons]
    if found.declared:
        models = ", ".join(shown(model) for model in found.declared)
        lines.append(f"  {style('declared', 'warn')}: the model is {models} by the configuration; nobody observed it")
    if found.path and found.comparable:
        lines.append(f"  {style('path', 'warn')}: other models or tools were called: spangate diff shows which")
    if found.pairs:
        lines.append(f"  {counted(len(found.pairs), 'model call')}, joined {_HOW[found.joined_by]}:")
    lines += [f"    {_pair_line(pair, style)}" for pair in found.pairs[:_MAX_PAIRS]]
    if len(found.pairs) > _MAX_PAIRS:
        lines.append(f"    and {len(found.pairs) - _MAX_PAIRS:,} more; --format json has all of them")
    return lines


def _pair_line(pair: Pair, style: Style) -> str:
    results = ", ".join(_result(one, pair, style) for one in pair.results)
    return f"{_named(pair)}{'' if pair.first else ' (later)'}: {results}"


def _named(pair: Pair) -> str:
    return " / ".join(dict.fromkeys(_name(span) for span in (pair.a, pair.b)))


def _name(span: Span | None) -> str:
    return "no call" if span is None else shown(span.name)


def _result(result: str, pair: Pair, style: Style) -> str:
    if result == "ok":
        return style(result, "pass")
    return style(result, "fail" if pair.first or result.startswith("missing") else "warn")
