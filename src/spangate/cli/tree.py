"""``spangate tree``: shows what happened in a recorded run, span by span, and where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from spangate.cli._options import recorded_runs_options


@click.command()
@recorded_runs_options
@click.option("--timing", is_flag=True, help="Draw a time line, with each span's own time and the holes in it.")
@click.option("--against", metavar="FILE", help="Show each run beside the run of this recording that it stands for.")
def command(files: Sequence[str], gates: Sequence[Any], form: str, against: str | None, *, timing: bool) -> None:
    """Show every agent run in each FILE as a tree; - is standard input.

    Each line is a span: its role, its name, how long it took, the tokens it recorded, and what became of it if that is
    not success. Below a span stand the findings about it. The exit code is 0 whatever the verdicts are, and 2 if a file
    cannot be read.

    With --against the runs of two recordings stand side by side, or, where the terminal has less than 100 columns, in
    one tree: + is a span that came, - one that went, ~ one that differs in more than its time. Runs of one name are
    compared in their order. The exit code is 3 if there is no run in one of the two.

    \b
    Examples:
      spangate tree traces.jsonl
      spangate tree traces.jsonl | less -R
      spangate tree --timing traces.jsonl
      spangate tree --against yesterday.jsonl today.jsonl
      spangate tree --format json traces.jsonl | jq '.spans[] | select(.findings != [])'

    JSON has one object a run: run_id, trace_id, root, verdict, and spans in the order of the tree (depth, span_id,
    parent_id, role, name, start_ns, duration_ns, outcome, input_tokens, output_tokens, findings). With --timing each
    span has exclusive_ns as well, what it took without its children, and the run has timing, as in spangate check.
    With --against it has one object a pair of runs: a and b, the runs without their spans, and spans, each place of
    both trees (depth, standing, changed, and the spans a and b of it, one of which may be null).
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._recordings import Tally, judged
    from spangate.cli._tree_report import json_tree, text_tree, timed_json_tree
    from spangate.cli._waterfall import timed_tree

    if against is not None:
        _compare(against, files, gates, form, timing=timing)
        return
    tally = Tally()
    written, drawn = (timed_json_tree, timed_tree) if timing else (json_tree, text_tree)
    write = written if form == "json" else drawn
    for run, verdict in judged(files, gates, tally):
        write(run, verdict)
    code = tally.exit_code(failed=False)
    raise SystemExit(code if tally.unreadable else 0)


def _compare(against: str, files: Sequence[str], gates: Sequence[Any], form: str, *, timing: bool) -> None:
    """Show the runs of a file beside those of the other."""
    from spangate._judge import Panel
    from spangate.cli._console import say
    from spangate.cli._side_by_side import json_trees, text_trees
    from spangate.cli._two_recordings import alone, two_recordings

    if len(files) > 1:
        raise click.UsageError("--against compares one FILE with another: name one")
    if timing:
        raise click.UsageError("--timing and --against do not go together")
    panel, write = Panel(gates), json_trees if form == "json" else text_trees
    for pair in two_recordings(against, files[0]):
        if pair.a is None or pair.b is None:
            say(f"note: {alone(pair, against, files[0])}")
        else:
            write((pair.a, panel.judge(pair.a)), (pair.b, panel.judge(pair.b)))
