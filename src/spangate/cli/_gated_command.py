"""A command gated from outside: a provider around it, a receiver for what it records, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import StatusCode

from spangate import process
from spangate._attach import ARMED, attach_parent
from spangate._membership import membership
from spangate._processor import GateSpanProcessor
from spangate._records import Gate, Verdict
from spangate._sdk.exporter import otlp_exporter
from spangate._version import __version__
from spangate.cli._foreground import run_in_foreground

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"


class Nowhere(SpanExporter):
    """Accepts what it is given: where no collector is named, the verdict is all that is wanted."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the SDK's signature
        """Accept spans."""
        return SpanExportResult.SUCCESS


@dataclass
class Outcome:
    """What came of a command.

    Its exit ``code``, how many spans were ``received``, requests ``refused`` and spans lost, by reason, and the id of
    the run that it is ``part_of``.
    """

    code: int = 0
    received: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)
    part_of: str | None = None


def gated(command: Sequence[str], gates: Iterable[Gate], tell: Callable[[Verdict], None]) -> Outcome:
    """Run a command under a gate, and have every verdict told as it falls.

    The trace that the environment names, a CI job's for one, is continued. Inside another gate's run nothing is judged
    here: what the command records is handed on to that one.
    """
    attach_parent()
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    gate = GateSpanProcessor(_exporter(os.environ), gates=gates, on_verdict=tell, receiver=process.Receiver())
    provider.add_span_processor(gate)
    process.use_provider(provider)
    tracer = provider.get_tracer("spangate.run", __version__)
    member = membership(os.environ)
    try:
        with tracer.start_as_current_span(f"run {PurePath(command[0]).name}") as root:
            code = run_in_foreground(command, _environment(os.environ))
            if code:
                root.set_status(StatusCode.ERROR, f"exit code {code}")
        provider.force_flush()
    finally:
        provider.shutdown()
        process.use_provider(None)
    part_of = None if member is None else member.run_id
    return Outcome(code, gate.received, gate.refused_requests, gate.losses, part_of)


def _exporter(environment: Mapping[str, str]) -> SpanExporter:
    is_wanted = environment.get(_EXPORTER, "otlp") == "otlp" and any(environment.get(name) for name in _ENDPOINTS)
    return otlp_exporter() if is_wanted else Nowhere()


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the command's environment: tracing is told where to go by what starts it, and to start by these."""
    return {ARMED: "1", _EXPORTER: "otlp", **environment}
