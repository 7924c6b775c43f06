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
@click.option("--timing", is_flag=True, help="Tell where the time of each run went.")
@click.option("--timing-baseline", "baseline", metavar="FILE", help="Fail runs that take more than this file says.")
@click.option("--update-timing-baseline", "update", is_flag=True, help="Write what the passing runs take to that file.")
def command(  # noqa: PLR0913  what one may ask for on the command line
    files: Sequence[str],
    gates: Sequence[Any],
    form: str,
    baseline: str | None,
    *,
    verbose: bool,
    quiet: bool,
    timing: bool,
    update: bool,
) -> None:
    """Judge every agent run in each FILE; - is standard input.

    FILE is a recording: OTLP/JSON (one object a line, or pretty-printed), OTLP protobuf, or the native recording; gzip
    of these too. The form is told by the content. Files may be larger than memory.

    \b
    Exit code:
      0  every run passes
      1  a run fails, or takes more than its timing baseline
      2  a file cannot be read, or the command is wrong
      3  there is no agent run in the input

    \b
    Examples:
      spangate check traces.jsonl
      spangate check --policy gates.toml night/*.jsonl.gz
      kubectl logs agent | spangate check -
      spangate check --format json traces.jsonl | jq -r 'select(.verdict == "fail") | .cluster'
      spangate check --timing traces.jsonl
      spangate check --timing-baseline timing.toml --update-timing-baseline healthy.jsonl
      spangate check --timing-baseline timing.toml traces.jsonl

    JSON has one object a run: run_id, trace_id, root, verdict, trigger, findings (code, level, span_id, span_name,
    detail), gates, totals, cluster. The cluster is the same for the same fault, whichever run shows it. With --timing
    or a baseline it has timing as well: wall, covered and untraced time, what each role took of its own, overlaps, and
    the longest holes.
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate.cli._check_report import JsonReport, TextReport
    from spangate.cli._recordings import Tally, judged
    from spangate.cli._timing_check import TimingCheck, timing_check

    tally = Tally()
    clock: TimingCheck | None = timing_check(baseline, update=update) if timing or baseline or update else None
    report = JsonReport(clock) if form == "json" else TextReport(clock, verbose=verbose, quiet=quiet)
    for run, verdict in judged(files, gates, tally):
        report.add(run, verdict)
    report.close()
    over = clock is not None and clock.close()
    raise SystemExit(tally.exit_code(failed=report.failed > 0 or over))
