"""A program that logs in an agent and ends without a word to its providers; what its exporters take goes to stdout."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence

from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler, ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangate import GateLogRecordProcessor, GateSpanProcessor


class Prints(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            sys.stdout.write(f"span {span.name}\n")
        return SpanExportResult.SUCCESS


class PrintsLogs(LogRecordExporter):
    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        for record in batch:
            sys.stdout.write(f"log {record.log_record.body!s}\n")
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002  the interface's name
        return True

    def shutdown(self) -> None:
        sys.stdout.write("logs are shut down\n")


def main(order: str, how: str) -> None:
    """Make the providers in this order, the last of which the SDK shuts down first, and leave a run open or leaking."""
    if order == "logs-first":
        loggers, tracers = LoggerProvider(), TracerProvider()
    else:
        tracers, loggers = TracerProvider(), LoggerProvider()
    gate = GateSpanProcessor(Prints())
    tracers.add_span_processor(gate)
    loggers.add_log_record_processor(GateLogRecordProcessor(PrintsLogs(), gate))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        logging.getLogger().addHandler(LoggingHandler(logger_provider=loggers))
    tracer = tracers.get_tracer("test")
    logging.getLogger("app").warning("before")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        logging.getLogger("app").warning("inside")
        if how == "leaks":
            tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat"})
        elif how == "exits":
            sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
