"""``spangate report``: writes recorded runs, with what is wrong in them, as a page to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from spangate.cli._options import policy_option


def _allowed(_ctx: click.Context, _parameter: click.Parameter, path: str | None) -> Any:
    """Turn the allow file into rules and allowances."""
    from spangate._allow_file import load_allow_file
    from spangate._errors import PolicyError
    from spangate.compare import Rules

    try:
        return (Rules(), ()) if path is None else load_allow_file(path)
    except PolicyError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@policy_option
@click.option("--against", metavar="FILE", help="Show what differs from the runs of this recording.")
@click.option(
    "--allow", metavar="FILE", callback=_allowed, help="With --against: differences that may be, as for spangate diff."
)
@click.option(
    "-o", "--output", metavar="FILE", default="report.html", show_default=True, help="The page; - is standard output."
)
def command(files: Sequence[str], gates: Sequence[Any], against: str | None, allow: Any, output: str) -> None:
    """Write every agent run in each FILE as one page to read in a browser; - is standard input.

    The page says which runs are refused, why, and what to do about it; it shows each run as a tree beside its time
    line, what was recorded about each span, what was used and where the time went. It is one file that loads nothing:
    it can be opened from disk or from the artefacts of a CI job. Values under keys that look like secrets are left out.
    A page that is there is replaced.

    \b
    Exit code:
      0  the page is written, whatever the verdicts are
      2  a file cannot be read or written, or the command is wrong
      3  there is no agent run in the input

    \b
    Examples:
      spangate report traces.jsonl
      spangate report --policy gates.toml -o run.html traces.jsonl
      spangate report --against yesterday.jsonl -o changes.html today.jsonl
      kubectl logs agent | spangate report -o - - > run.html
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._console import PASSED, UNREADABLE
    from spangate.cli._recordings import Tally
    from spangate.cli._report.written import page_of, page_of_difference, write

    if against is not None and len(files) > 1:
        raise click.UsageError("--against compares one FILE with another: name one")
    if against is not None:
        rules, allowed = allow
        compared = page_of_difference(against, files[0], gates, rules, allowed)
        raise SystemExit(PASSED if write(compared, output) else UNREADABLE)
    tally = Tally()
    page = page_of(files, gates, tally)
    code = tally.exit_code(failed=False)
    raise SystemExit(code if page is None or write(page, output) else UNREADABLE)
