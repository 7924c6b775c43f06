"""A real tracer provider and a real logger provider with the two halves of a gate, and exporters in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from opentelemetry._logs import LogRecord
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context, use_span

from spangate import GateLogRecordProcessor, Run
from spangate.gates import Completeness, Forest
from tests.live.gated import Gated, What


class Logged(Gated):
    """A gated tracer provider with a logger provider beside it. ``runs`` are the runs that were judged."""

    made: ClassVar[list[Logged]] = []  # type: ignore[assignment]  # these, and in the other list as well

    def __init__(self, *, log_exporter: LogRecordExporter | None = None, **settings: Any) -> None:
        self.runs: list[Run] = []
        super().__init__(**{"gates": (Completeness(), Forest(), self._see), **settings})
        Gated.made.append(self)
        self.log_memory = in_memory() if log_exporter is None else log_exporter
        self.logs = GateLogRecordProcessor(self.log_memory, self.gate)
        self.loggers = LoggerProvider(Resource({"service.name": "test"}), shutdown_on_exit=False)
        self.loggers.add_log_record_processor(self.logs)

    def _see(self, run: Run) -> Iterator[Any]:
        self.runs.append(run)
        yield from ()

    def log(self, body: Any, at: Span | SpanContext | None = None, **fields: Any) -> None:
        """Emit a log record in the context of a span, in no trace if there is none."""
        context = Context()
        if at is not None:
            context = set_span_in_context(NonRecordingSpan(at) if isinstance(at, SpanContext) else at, context)
        context = fields.pop("context", context)
        # The API takes an empty context for none, and the current one for that.
        with use_span(NonRecordingSpan(SpanContext(0, 0, is_remote=False))):
            self.loggers.get_logger("test").emit(LogRecord(body=body, context=context, **fields))

    @contextmanager
    def logged(self, what: What, name: str | None = None, under: Span | None = None) -> Iterator[Span]:
        """A span with a log record in it that has its name."""
        with self.open(what, name, under) as span:
            self.log(name or what, span)
            yield span

    @property
    def left(self) -> list[Any]:
        """The bodies of the records that have left, once everything that may has."""
        assert self.loggers.force_flush()
        return self.sent

    @property
    def sent(self) -> list[Any]:
        """The bodies of the records that have left so far."""
        assert isinstance(self.log_memory, InMemoryLogRecordExporter)
        return [record.log_record.body for record in self.log_memory.get_finished_logs()]

    @property
    def notes(self) -> list[str]:
        """The codes of what the verdicts say of log records."""
        return [one.code for verdict in self.verdicts for one in verdict.findings if one.gate == "logs"]


def in_memory() -> InMemoryLogRecordExporter:
    return InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK's


class LogProbe(LogRecordExporter):
    """An exporter that answers as a test says, and notices if it is called twice at once."""

    def __init__(self, answer: Callable[[int], LogRecordExportResult | None] = lambda _call: None) -> None:
        self.calls: list[list[Any]] = []
        self.threads: set[str] = set()
        self.overlaps = self.shutdowns = 0
        self._inside = 0
        self._answer = answer

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self._inside += 1
        self.overlaps += self._inside > 1
        self.threads.add(threading.current_thread().name)
        self.calls.append([record.log_record.body for record in batch])
        answer = self._answer(len(self.calls))
        self._inside -= 1
        return LogRecordExportResult.SUCCESS if answer is None else answer

    @property
    def bodies(self) -> list[Any]:
        return [body for call in self.calls for body in call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  the interface's name
        return True

    def shutdown(self) -> None:
        self.shutdowns += 1


class HangingLogs(LogProbe):
    """An exporter that does not come back until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.is_there = threading.Event()
        self.let_go = threading.Event()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.is_there.set()
        self.let_go.wait(60.0)
        return super().export(batch)
