"""``spangate diff``: says what changed between two recorded runs, and whether all of it is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spangate.compare._rules import Changed


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--allow", "allow", metavar="FILE", help="What may change, and by which rules it is compared (TOML).")
@click.option(
    "--changed",
    type=click.Choice(["prompt", "tools", "model", "params"]),
    help="The one thing that was meant to change: it may differ, and nothing else that was asked.",
)
@click.option(
    "--baseline",
    "baselines",
    metavar="FILE",
    multiple=True,
    help="A run, or a directory of such files, that nobody changed anything about: what differs among three or more of"
    " them is known to vary. May be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "junit"]),
    default="text",
    help="text for people (the default), json for scripts: one object a pair of runs, markdown for the summary of a CI"
    " job, junit for what shows tests.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there, not to standard output.")
def command(  # noqa: PLR0913, PLR0917  what one may ask for on the command line
    first: str,
    second: str,
    allow: str | None,
    changed: Changed | None,
    baselines: Sequence[str],
    form: str,
    output: str | None,
) -> None:
    """Say what changed from the runs in A to those in B, and whether all of it is allowed; - is standard input.

    Both have to be closed (complete, and one tree) and comparable (see spangate compare); else there is no diff. Then
    calls of tools are aligned in causal order, agent by agent: added, dropped, reordered, and drift, which is the same
    call with other arguments. A call that is made once more is added, even if its arguments are those of the first.
    Edges say what stands below what in the tree. Without an allow file nothing may change.

    \b
    An allow file:
      coarse = ["search"]                # compared by name only
      added = ["retrieve"]               # names; * stands for any text
      drift = [{ name = "plan", key = "query", reason = "new wording", expires = 2027-03-31 }]
      edge_added = [{ name = "invoke_agent cook > execute_tool *" }]
    It may also hold dropped, reordered, edge_dropped, log_added and log_dropped; logs = true compares log records;
    redact and volatile name keys of arguments that do not count, normalise what is left out of names. An entry allows
    something up to and including the day on which it expires (UTC).

    \b
    Exit code:
      0  bounded: every change is allowed, or known to vary
      1  unbounded
      2  a run is not closed, or the two cannot be compared; a file cannot be read, or the command is wrong
      3  there is no run, or no model call, in one of them

    \b
    Examples:
      spangate diff before.jsonl after.jsonl
      spangate diff before.jsonl after.jsonl --allow allow.toml --changed prompt
      spangate diff before.jsonl after.jsonl --baseline nightly/
      spangate diff --format markdown before.jsonl after.jsonl >> "$GITHUB_STEP_SUMMARY"
      spangate diff --format json before.jsonl after.jsonl | jq '.changes[] | select(.allowed == null)'

    JSON has answer (bounded, unbounded, refused), refusal, reasons, a and b (run_id, trace_id, root, spans), changes
    (class, name, agent, count, keys, digest_a, digest_b, span_a, span_b, not_evaluable, allowed, varies), roles,
    recounted edges, unused and expired entries, faults and notes.
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._diffing import Asked, run

    raise SystemExit(run(Asked(first, second, allow, changed, tuple(baselines), form, output)))
