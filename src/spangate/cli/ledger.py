"""``spangate ledger``: what tools were called with, as far as a ledger knows it, and why a call is blocked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
NOTHING, BLOCKED = 3, 1
"""The exit codes: no such call is on record, and a call is blocked."""


def _seconds(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    """Read a time such as ``90s``, ``12h`` or ``7d``."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is no time: write 90s, 30m, 12h, 7d or 2w")
    return float(found[1]) * _UNITS[found[2]]


_SCOPE: Final = (
    click.option("--session", metavar="NAME", help="Calls of this session."),
    click.option("--repo", metavar="DIR", help="Calls on the working tree of this repository."),
    click.option("--older-than", metavar="TIME", callback=_seconds, help="Calls that ended so long ago: 90s, 12h, 7d."),
)
_LEDGER: Final = click.option(
    "--ledger",
    "path",
    metavar="FILE",
    required=True,
    envvar="SPANGATE_LEDGER",
    show_envvar=True,
    help="The file of the ledger.",
)
_FORMAT: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text for people (the default), json for scripts: one object a line.",
)


def _scoped(command: _Command) -> _Command:
    for option in reversed((_LEDGER, *_SCOPE, _FORMAT)):
        command = option(command)
    return command


@click.group()
def command() -> None:
    """See what tools were called with, and why a call is blocked.

    The ledger is a file that spangate.ledger.RetryLedger or a gate has written. It holds no arguments, only their
    fingerprints.

    \b
    Examples:
      spangate ledger list --ledger calls.db --session nightly
      spangate ledger why --ledger calls.db 8ac469820b56c74d
      spangate ledger forget --ledger calls.db --older-than 30d
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it


@command.command("list")
@_scoped
def list_calls(path: str, session: str | None, repo: str | None, older_than: float | None, form: str) -> None:
    """List the calls on record, as they began.

    \b
    Exit code:
      0  there are some
      2  the ledger cannot be read, or the command is wrong
      3  there are none

    JSON has one object a call: id, fingerprint, tool, version, tree_before, tree_after, outcome, exit_code, diff_stat,
    session, repository, trace_id, span_id, sighting, origin, started_ns, ended_ns. What is not known is null.
    """  # noqa: D301  as above
    from spangate.cli._ledger_report import opened, write_attempt

    with opened(path) as ledger:
        found = ledger.attempts(session=session, repo=repo, older_than_s=older_than)
    for attempt in found:
        write_attempt(attempt, form)
    raise SystemExit(0 if found else NOTHING)


@command.command("why")
@click.argument("fingerprint")
@_LEDGER
@click.option("--session", metavar="NAME", help="Judge by the calls of this session alone.")
@click.option("--repo", metavar="DIR", help="Judge by this working tree; without it, by that of the last such call.")
@_FORMAT
def explain(fingerprint: str, path: str, session: str | None, repo: str | None, form: str) -> None:
    """Say whether the call with FINGERPRINT is blocked now, why, and which earlier call and span that is due to.

    \b
    Exit code:
      0  it is allowed
      1  it is blocked
      2  the ledger or the repository cannot be read, or the command is wrong
      3  no such call is on record

    JSON has one object: blocked, reason, fingerprint, and earlier, the call that decided, as spangate ledger list has
    it.
    """  # noqa: D301  as above
    from spangate.cli._console import say
    from spangate.cli._ledger_report import opened, write_veto

    with opened(path) as ledger:
        known = ledger.attempts(fingerprint=fingerprint, session=session, repo=repo)
    if not known:
        say(f"no call with the fingerprint {fingerprint} is on record in {path}")
        raise SystemExit(NOTHING)
    with opened(path, repo=repo or known[-1].repository or None, session=session) as ledger:
        veto = ledger.why(fingerprint)
    write_veto(veto, known[-1].tool, form)
    raise SystemExit(BLOCKED if veto else 0)


@command.command("forget")
@_scoped
@click.option("--fingerprint", metavar="HEX", help="Calls with this fingerprint.")
@click.option("--all", "everything", is_flag=True, help="All calls. Not together with another scope.")
def forget(  # noqa: PLR0913  the options of a command
    path: str,
    session: str | None,
    repo: str | None,
    older_than: float | None,
    form: str,
    fingerprint: str | None,
    *,
    everything: bool,
) -> None:
    """Delete calls from the ledger, so that they block nothing any more. It is not asked again.

    What is to go has to be said: one or more of --fingerprint, --session, --repo and --older-than, all of which must
    hold, or --all.

    \b
    Exit code:
      0  done, whether or not there were any
      2  the ledger cannot be written, or the command is wrong

    JSON has one object: forgotten, the number of calls.
    """  # noqa: D301  as above
    from spangate.cli._ledger_report import opened, write_forgotten

    is_scoped = any(value is not None for value in (fingerprint, session, repo, older_than))
    if everything == is_scoped:
        raise click.UsageError("say what to forget: --fingerprint, --session, --repo, --older-than, or --all alone")
    with opened(path) as ledger:
        if everything:
            number = ledger.forget_all()
        else:
            number = ledger.forget(fingerprint=fingerprint, session=session, repo=repo, older_than_s=older_than)
    write_forgotten(number, form)
