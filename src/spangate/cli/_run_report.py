"""What ``spangate run`` says: each verdict on standard error as it falls, and why there is none."""

from __future__ import annotations

import json
import os
import sys
from typing import Final, TextIO

from spangate._records import Verdict
from spangate._units import counted
from spangate._verdict.text import one_line, verdict_text
from spangate.cli._check_report import as_json
from spangate.cli._console import say, style_of
from spangate.cli._gated_command import Outcome

_IS_OFF: Final = "no run: OTEL_SDK_DISABLED is set, which turns OpenTelemetry off, here and in the command"
_NOTHING_CAME: Final = """\
no run: the command has sent no span. Its tracing must be on, and send traces by OTLP to where the environment says
(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which it was given). Python: pip install opentelemetry-distro spangate, then
spangate run -- opentelemetry-instrument CMD. Node.js: --require @opentelemetry/auto-instrumentations-node/register.
Others: the switch that turns their telemetry on. A program that names another endpoint in its code sends it there."""


class RunReport:
    """Tells verdicts on standard error, and in a file if one was asked for. ``refused`` of ``runs`` fail."""

    def __init__(self, told: TextIO | None, *, quiet: bool) -> None:
        self._told = told
        self._quiet = quiet
        self._style = style_of(sys.stderr)
        self.runs = self.refused = 0

    def add(self, verdict: Verdict) -> None:
        """Tell one verdict."""
        self.runs += 1
        self.refused += not verdict.passed
        if self._told is not None:
            print(json.dumps(as_json(verdict)), file=self._told, flush=True)
        if not verdict.passed:
            say(verdict_text(verdict, style=self._style))
        elif not self._quiet:
            say(self._style("spangate ", "dim") + one_line(verdict))

    def close(self, outcome: Outcome) -> None:
        """Tell why nothing was judged, and what was lost."""
        if outcome.part_of is not None:
            say(f"part of run {outcome.part_of}, which is judged where it was started")
        elif not self.runs and outcome.received:
            say(f"no run: {counted(outcome.received, 'span')} came, none of them an agent's")
        elif not self.runs:
            say(_IS_OFF if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" else _NOTHING_CAME)
        for reason, requests in outcome.refused.items():
            say(f"{counted(requests, 'request')} of programs refused: {reason}")
        for reason, spans in outcome.losses.items():
            say(f"{counted(spans, 'span')} lost on the way to the collector: {reason}")
