"""Several exporters behind one gate: each gets every span, and a retry goes only to those that have refused."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


class FanOutExporter(SpanExporter):
    """Exports to all of ``exporters``; a success is a success of all."""

    def __init__(self, exporters: Sequence[SpanExporter]) -> None:
        self._exporters = tuple(exporters)
        self._last: Sequence[ReadableSpan] = ()
        self._left: list[SpanExporter] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export to those that have not accepted these very spans yet. What one raises, it raises after the others."""
        todo = self._left if spans is self._last and self._left else list(self._exporters)
        self._last, self._left = spans, list(todo)
        error: Exception | None = None
        for exporter in todo:
            try:
                accepted = exporter.export(spans) is SpanExportResult.SUCCESS
            except Exception as raised:  # noqa: BLE001  one vendor's fault must not cost the others the spans
                accepted, error = False, raised
            if accepted:
                self._left.remove(exporter)
        if error is not None:
            raise error
        return SpanExportResult.FAILURE if self._left else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush all."""
        flushed = [exporter.force_flush(timeout_millis) is not False for exporter in self._exporters]
        return all(flushed)

    def shutdown(self) -> None:
        """Shut all down."""
        for exporter in self._exporters:
            exporter.shutdown()
