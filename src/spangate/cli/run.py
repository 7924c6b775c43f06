"""``spangate run``: runs a whole agent command behind a gate, with no change to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

import click

from spangate.cli._options import policy_option

REFUSED = 70
"""The exit code of a command whose run is refused: an internal error by sysexits.h, which few programs use."""


@click.command(context_settings={"allow_interspersed_args": False})
@policy_option
@click.option(
    "--json",
    "told",
    type=click.File("w", lazy=False),
    metavar="FILE",
    help="Write the verdicts here, one JSON object a line.",
)
@click.option("--require-run", is_flag=True, help="Leave with 70, too, if the command records no agent run.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about runs that pass.")
@click.argument("command_line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
def command(
    command_line: Sequence[str], gates: Sequence[Any], told: TextIO | None, *, require_run: bool, quiet: bool
) -> None:
    """Run CMD and judge what it and the programs that it starts record.

    CMD keeps its standard streams and gets the signals that come. It finds the trace context in its environment
    (TRACEPARENT), and where its spans are wanted, in the variables that every OpenTelemetry SDK reads
    (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT). A run that passes is exported to the collector that
    OTEL_EXPORTER_OTLP_ENDPOINT names; of one that fails a single verdict span is. Without that variable nothing is
    exported, and the verdict is only told, on standard error.

    Python programs that are traced without code (opentelemetry-instrument) join the run by themselves where spangate
    is installed; others continue TRACEPARENT, or are judged as runs of their own.

    \b
    Exit code:
      CMD's own, 128 + N if signal N ended it, 126 or 127 if it cannot be run
      70  a run is refused

    \b
    Examples:
      spangate run -- python agent.py "fix the failing test"
      spangate run --policy gates.toml --json verdict.jsonl -- opentelemetry-instrument python agent.py
      OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 spangate run -- node agent.mjs
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    from spangate._errors import SpangateError
    from spangate.cli._console import quiet_log, say
    from spangate.cli._foreground import CannotRunError
    from spangate.cli._gated_command import gated
    from spangate.cli._run_report import RunReport

    report = RunReport(told, quiet=quiet)
    try:
        with quiet_log():
            outcome = gated(command_line, gates, report.add)
    except CannotRunError as error:
        say(str(error))
        raise SystemExit(error.code) from None
    except SpangateError as error:
        raise click.ClickException(str(error)) from None
    report.close(outcome)
    is_missing = require_run and not report.runs and outcome.part_of is None
    raise SystemExit(REFUSED if report.refused or is_missing else outcome.code)
