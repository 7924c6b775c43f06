"""What ``spangate ledger`` opens and says: text for people, and JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from spangate._errors import SpangateError
from spangate._ledger.rows import moment
from spangate._units import counted, duration, shown
from spangate.cli._console import UNREADABLE, style_of
from spangate.ledger import Attempt, RetryLedger, Veto

_MAX_PATH: Final = 4096


class UnreadableError(click.ClickException):
    """The ledger cannot be used. One line on standard error says why."""

    exit_code = UNREADABLE


@contextmanager
def opened(path: str, *, repo: str | None = None, session: str | None = None) -> Iterator[RetryLedger]:
    """Open a ledger that is there. What is wrong with it, or with the repository, ends the command."""
    if not Path(path).exists():
        raise UnreadableError(f"{path}: there is no ledger")
    with closing(RetryLedger(path, repo=repo, session=session)) as ledger:
        try:
            yield ledger
        except SpangateError as error:
            raise UnreadableError(str(error)) from None


def write_attempt(attempt: Attempt, form: str) -> None:
    """Write one call: a line of JSON, or a few lines for a person."""
    click.echo(json.dumps(asdict(attempt)) if form == "json" else _attempt_text(attempt))


def write_veto(veto: Veto, tool: str, form: str) -> None:
    """Write a decision about a call of ``tool``."""
    if form == "json":
        click.echo(json.dumps(asdict(veto)))
        return
    word = style_of(sys.stdout)(*(("blocked", "fail") if veto else ("allowed", "pass")))
    click.echo(f"{shown(tool)} {veto.fingerprint}: {word}, since {veto.reason}")
    if veto.earlier is not None:
        click.echo(_attempt_text(veto.earlier))


def write_forgotten(number: int, form: str) -> None:
    """Write how many calls were forgotten."""
    click.echo(json.dumps({"forgotten": number}) if form == "json" else f"{counted(number, 'call')} forgotten")


def _attempt_text(attempt: Attempt) -> str:
    dim = style_of(sys.stdout)
    took = "" if attempt.ended_ns is None else f" in {duration(attempt.ended_ns - attempt.started_ns)}"
    name = shown(f"{attempt.tool} {attempt.version}".strip())
    lines = [
        f"{attempt.fingerprint or 'no arguments    '}  {name}  {_word(attempt)}{took}, {moment(attempt.started_ns)}"
    ]
    lines += [f"    {what}: {shown(str(value), _MAX_PATH)}" for what, value in _details(attempt) if value]
    return "\n".join([lines[0], *(dim(line, "dim") for line in lines[1:])])


def _word(attempt: Attempt) -> str:
    code = "" if attempt.exit_code is None else f" ({attempt.exit_code})"
    if attempt.outcome is None:
        return "never seen to end"
    return f"{'incomplete' if attempt.is_incomplete else attempt.outcome}{code}"


def _details(attempt: Attempt) -> Iterator[tuple[str, Any]]:
    if attempt.span_id:
        yield "span", f"{attempt.span_id} of trace {attempt.trace_id}"
    yield "session", attempt.session
    if attempt.repository:
        before, after = (tree[:12] if tree else "unknown" for tree in (attempt.tree_before, attempt.tree_after))
        yield "tree", f"{before} to {after} in {attempt.repository}"
    yield "files", attempt.diff_stat or "what changed is not known"
