"""``spangate check``: judges recorded runs and says so in the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from spangate.cli._options import recorded_runs_options


@click.command()
@recorded_runs_options
@click.option("-v", "--verbose", is_flag=True, help="Show every run in full, not only the first of each fault.")
@click.option("-q", "--quiet", is_flag=True, help="Show the summary alone.")
def command(files: Sequence[str], gates: Sequence[Any], form: str, *, verbose: bool, quiet: bool) -> None:
    """Judge every agent run in each FILE; - is standard input.

    FILE is a recording: OTLP/JSON (one object a line, or pretty-printed), OTLP protobuf, or the native recording; gzip
    of these too. The form is told by the content. Files may be larger than memory.

    \b
    Exit code:
      0  every run passes
      1  a run fails
      2  a file cannot be read, or the command is wrong
      3  there is no agent run in the input

    \b
    Examples:
      spangate check traces.jsonl
      spangate check --policy gates.toml night/*.jsonl.gz
      kubectl logs agent | spangate check -
      spangate check --format json traces.jsonl | jq -r 'select(.verdict == "fail") | .cluster'

    JSON has one object a run: run_id, trace_id, root, verdict, trigger, findings (code, level, span_id, span_name,
    detail), gates, totals, cluster. The cluster is the same for the same fault, whichever run shows it.
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._check_report import JsonReport, TextReport
    from spangate.cli._recordings import Tally, judged

    tally = Tally()
    report = JsonReport() if form == "json" else TextReport(verbose=verbose, quiet=quiet)
    for run, verdict in judged(files, gates, tally):
        report.add(run, verdict)
    report.close()
    raise SystemExit(tally.exit_code(failed=report.failed > 0))
