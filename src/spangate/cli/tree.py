"""``spangate tree``: shows what happened in a recorded run, span by span, and where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from spangate.cli._options import recorded_runs_options


@click.command()
@recorded_runs_options
@click.option("--timing", is_flag=True, help="Draw a time line, with each span's own time and the holes in it.")
def command(files: Sequence[str], gates: Sequence[Any], form: str, *, timing: bool) -> None:
    """Show every agent run in each FILE as a tree; - is standard input.

    Each line is a span: its role, its name, how long it took, the tokens it recorded, and what became of it if that is
    not success. Below a span stand the findings about it. The exit code is 0 whatever the verdicts are, and 2 if a file
    cannot be read.

    \b
    Examples:
      spangate tree traces.jsonl
      spangate tree traces.jsonl | less -R
      spangate tree --timing traces.jsonl
      spangate tree --format json traces.jsonl | jq '.spans[] | select(.findings != [])'

    JSON has one object a run: run_id, trace_id, root, verdict, and spans in the order of the tree (depth, span_id,
    parent_id, role, name, start_ns, duration_ns, outcome, input_tokens, output_tokens, findings). With --timing each
    span has exclusive_ns as well, what it took without its children, and the run has timing, as in spangate check.
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._recordings import Tally, judged
    from spangate.cli._tree_report import json_tree, text_tree, timed_json_tree
    from spangate.cli._waterfall import timed_tree

    tally = Tally()
    written, drawn = (timed_json_tree, timed_tree) if timing else (json_tree, text_tree)
    write = written if form == "json" else drawn
    for run, verdict in judged(files, gates, tally):
        write(run, verdict)
    code = tally.exit_code(failed=False)
    raise SystemExit(code if tally.unreadable else 0)
