"""What ``spangate diff`` does: reads, pairs, diffs and writes."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import click

from spangate._allow_file import load_allow_file
from spangate._errors import PolicyError
from spangate._names import stable_name
from spangate._pinned import VARIABLE
from spangate._run import Run
from spangate._units import counted, shown
from spangate._verdict.text import plain
from spangate.cli._console import FAILED, NO_RUN, PASSED, UNREADABLE, say, style_of
from spangate.cli._diff_json import diff_json
from spangate.cli._diff_junit import diff_junit
from spangate.cli._diff_markdown import diff_markdown
from spangate.cli._diff_text import diff_text
from spangate.cli._diff_words import Alone, Found, answer, summary, title
from spangate.cli._two_recordings import NoRuns, Runs, alone, recorded, two_recordings
from spangate.compare._diff import diff
from spangate.compare._noise import LEAST
from spangate.compare._rules import Allowance, Changed, Rules

_BRIEF: Final = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for on the command line."""

    first: str
    second: str
    allow: str | None
    changed: Changed | None
    baselines: tuple[str, ...]
    form: str
    output: str | None


def run(asked: Asked) -> int:
    """Diff two recordings and write what was found. Returns the exit code."""
    with without_collecting():
        rules, allowed = _allowed(asked.allow)
        pairs = two_recordings(asked.first, asked.second)
        known = [one for path in asked.baselines for one in _baselines(path)]
        found = [_found(asked, pair, rules, allowed, known) for pair in pairs]
        _write(asked, found)
    return max(map(_code, found))


@contextmanager
def without_collecting() -> Iterator[None]:
    """Look for no garbage meanwhile: nothing is freed before the end, and looking takes as long as the diff itself."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _allowed(path: str | None) -> tuple[Rules, Sequence[Allowance]]:
    try:
        return (Rules(), ()) if path is None else load_allow_file(path)
    except PolicyError as error:
        raise click.UsageError(str(error)) from None


def _baselines(path: str) -> Iterator[Run]:
    """Yield the runs of a file, or of all files in a directory."""
    there = Path(path)
    names = sorted(str(one) for one in there.iterdir() if one.is_file()) if there.is_dir() else [path]
    try:
        for name in names:
            yield from recorded(name)
    except NoRuns as error:
        say(f"error: baseline: {error}")
        raise SystemExit(UNREADABLE) from None


def _found(asked: Asked, pair: Runs, rules: Rules, allowed: Sequence[Allowance], known: Sequence[Run]) -> Found:
    a, b = pair.a, pair.b
    if a is None or b is None:
        return Alone(pair.name, alone(pair, asked.first, asked.second), a, b)
    baselines = [one for one in known if stable_name(one.name) == stable_name(a.name)]
    if asked.baselines and len(baselines) < LEAST:
        there = f"{counted(len(baselines), 'run')} named {shown(a.name)!r} among the baselines"
        raise click.UsageError(f"{there}: what varies is known from {LEAST} runs or more")
    return diff(
        a,
        b,
        today=datetime.now(timezone.utc).date(),
        rules=rules,
        allowed=allowed,
        changed=asked.changed,
        baselines=baselines,
        model_from_config=os.environ.get(VARIABLE) or None,
    )


def _code(found: Found) -> int:
    if isinstance(found, Alone):
        return UNREADABLE
    if found.refusal is None:
        return PASSED if found.bounded else FAILED
    return NO_RUN if found.closed and "no_generations" in found.comparison.reasons else UNREADABLE


def _write(asked: Asked, found: Sequence[Found]) -> None:
    """Write what was found to standard output or, with a line for each answer beside it, to a file."""
    if asked.output is None:
        click.echo(_text(asked.form, found, is_file=False))
        return
    try:
        Path(asked.output).write_text(
            _text(asked.form, found, is_file=True) + "\n", encoding="utf-8", errors="backslashreplace"
        )
    except OSError as error:
        raise click.UsageError(f"{asked.output}: cannot be written: {error.strerror or error}") from None
    for one in found:
        say(f"{answer(one)}: {shown(title(one))}: {shown(summary(one), _BRIEF)}")


def _text(form: str, found: Sequence[Found], *, is_file: bool) -> str:
    if form == "junit":
        return diff_junit(found)
    if form == "json":
        return "\n".join(json.dumps(diff_json(one)) for one in found)
    if form == "markdown":
        return "\n\n".join(map(diff_markdown, found))
    style = plain if is_file else style_of(sys.stdout)
    return "\n\n".join(diff_text(one, style) for one in found)
