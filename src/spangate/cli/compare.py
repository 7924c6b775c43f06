"""``spangate compare``: says whether two recorded runs may be compared at all."""

from __future__ import annotations

import os

import click


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text for people (the default), json for scripts: one object a pair of runs.",
)
def command(first: str, second: str, form: str) -> None:
    """Say whether the runs in A and B asked the model the same, so that they may be compared; - is standard input.

    Runs are joined by their names and order, model calls by their generation_id, else by their position within their
    agent. Of each agent the first call has to match: prompt, tools, model, temperature and other parameters. Later
    prompts hold results of tools; where they differ, that is listed. Of a model that AGENT_MODEL_ID declares it is said
    that nobody has observed it.

    \b
    Exit code:
      0  they may be compared
      2  they may not, and it says why; or a file cannot be read
      3  there is no run, or no model call, in one of them

    \b
    Examples:
      spangate compare before.jsonl after.jsonl
      spangate compare --format json before.jsonl after.jsonl | jq .reasons

    JSON has run_a, run_b (run_id, root), comparable, reasons, joined_by, declared_models, other_path (the runs called
    other models or tools, which spangate diff shows), and pairs (agent, name, span_a, span_b, first, results).
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate._pinned import VARIABLE
    from spangate.cli._compare_report import exit_code, write_json, write_text
    from spangate.cli._two_recordings import two_recordings
    from spangate.compare._generations import compare

    model = os.environ.get(VARIABLE) or None
    write = write_json if form == "json" else write_text
    codes = []
    for runs in two_recordings(first, second):
        found = None
        if runs.a is not None and runs.b is not None:
            found = compare(runs.a, runs.b, model_from_config=model)
        write(runs, found, (first, second))
        codes.append(exit_code(found))
    raise SystemExit(max(codes))
