"""The only place that looks inside the SDK and inside vendors' processors: which exporters hang on a provider.

Nothing here is public API of theirs, so every step is guarded: what is not found as expected is left alone and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_MAX_DEPTH = 6


class NoExporter(SpanExporter):
    """Stands where an exporter was taken away: what arrives has gone, or will go, through the gate."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the interface's name
        """Accept and forget."""
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""


def sdk_provider(provider: Any) -> Any | None:
    """Return the SDK provider behind ``provider``, which a vendor may have wrapped. None if there is none."""
    for _ in range(_MAX_DEPTH):
        if hasattr(provider, "_active_span_processor"):
            return provider
        provider = getattr(provider, "provider", None)
    return None


def processors_of(owner: Any) -> tuple[SpanProcessor, ...]:
    """Return the processors of an SDK provider, or of the multi-processor that a span reports to."""
    multi = getattr(owner, "_active_span_processor", owner)
    return tuple(getattr(multi, "_span_processors", ()))


def siblings_of(span: Any) -> tuple[SpanProcessor, ...]:
    """Return all processors that a live span reports to."""
    return processors_of(getattr(span, "_span_processor", None))


def exporters_in(processor: Any) -> list[tuple[Any, str, SpanExporter]]:
    """Find the exporters that a processor leads to, each with the object and the attribute that hold it.

    An exporter inside another exporter belongs to that one and is not listed. Of two attributes for one exporter both
    are, since whoever takes it away must change both.
    """
    return list(_exporters(processor, _MAX_DEPTH, set()))


def _exporters(owner: Any, depth: int, seen: set[int]) -> Iterator[tuple[Any, str, SpanExporter]]:
    if depth == 0 or id(owner) in seen:
        return
    seen.add(id(owner))
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if isinstance(value, SpanExporter):
            if not isinstance(value, NoExporter):
                yield owner, name, value
        elif isinstance(value, SpanProcessor) or _is_batcher(value):
            yield from _exporters(value, depth - 1, seen)
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, SpanProcessor):
                    yield from _exporters(item, depth - 1, seen)


def _is_batcher(value: Any) -> bool:
    """Recognise the SDK's batching helper, which is no processor itself."""
    return isinstance(getattr(value, "_exporter", None), SpanExporter)


def take_exporters(processors: Sequence[SpanProcessor], timeout_millis: int = 5_000) -> list[SpanExporter]:
    """Take the exporters away from ``processors``, which go on without; what they held is flushed to them first."""
    taken: dict[int, SpanExporter] = {}
    for processor in processors:
        found = exporters_in(processor)
        if found:
            processor.force_flush(timeout_millis)
        for owner, name, exporter in found:
            setattr(owner, name, NoExporter())
            taken[id(exporter)] = exporter
    return list(taken.values())
