"""The only place that looks inside the SDK and inside vendors' processors: their exporters, and what keeps them quiet.

Nothing here is public API of theirs, so every step is guarded: what is not found as expected is left alone and named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import opentelemetry.context
from opentelemetry.context import Context, get_current, set_value
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_MAX_DEPTH = 6
_SIBLINGS = attrgetter("_span_processor._span_processors")
_logger = logging.getLogger("spangate")


def silenced() -> Context:
    """Return the current context with what keeps instrumentations from tracing what an exporter does.

    The SDK's own processors set a key that is not public; some instrumentations know that one only, some the other.
    """
    context = set_value("suppress_instrumentation", True)  # noqa: FBT003  a context value, not a flag of ours
    key = getattr(opentelemetry.context, "_SUPPRESS_INSTRUMENTATION_KEY", None)
    return context if key is None else set_value(key, True, context)  # noqa: FBT003


def is_suppressed() -> bool:
    """Say whether whoever runs now wants no tracing: an exporter, for one."""
    current = get_current()
    if not current:
        return False
    key = getattr(opentelemetry.context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation")
    return bool(current.get("suppress_instrumentation") or current.get(key))


class NoExporter(SpanExporter):
    """Stands where an exporter was taken away, and gives the gate what had ended before it was there."""

    def __init__(self) -> None:
        self._kept: list[ReadableSpan] = []
        self._hand_over: Callable[[Sequence[ReadableSpan]], None] = self._kept.extend

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Accept."""
        self._hand_over(spans)
        return SpanExportResult.SUCCESS

    def hand_over(self, take: Callable[[ReadableSpan], None], until_ns: int) -> None:
        """Give away what had ended by ``until_ns``, now and whenever it arrives. The gate has seen the rest itself."""

        def hand_over(spans: Sequence[ReadableSpan]) -> None:
            for span in spans:
                if span.end_time is not None and span.end_time <= until_ns:
                    take(span)

        self._hand_over = hand_over
        hand_over(self._kept)
        self._kept.clear()

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


def siblings_of(span: Any) -> Sequence[SpanProcessor]:
    """Return all processors that a live span reports to."""
    try:
        siblings: Sequence[SpanProcessor] = _SIBLINGS(span)
    except AttributeError:
        return ()
    return siblings


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


def exporters_of(processors: Iterable[SpanProcessor]) -> list[SpanExporter]:
    """List the exporters that processors lead to, each once."""
    found = {id(exporter): exporter for processor in processors for _, _, exporter in exporters_in(processor)}
    return list(found.values())


def take_exporters(processors: Iterable[SpanProcessor]) -> list[NoExporter]:
    """Take the exporters away from ``processors``, which go on without. Returns what stands in their places."""
    stand_ins: list[NoExporter] = []
    for processor in processors:
        for owner, name, _ in exporters_in(processor):
            stand_ins.append(NoExporter())
            setattr(owner, name, stand_ins[-1])
    return stand_ins


def flush(processor: SpanProcessor, timeout_millis: int = 5_000) -> None:
    """Have a processor hand to its exporters what it holds."""
    try:
        processor.force_flush(timeout_millis)
    except Exception:  # a vendor's, or anybody's; it must not keep the program from being set up
        _logger.exception("%s could not be flushed", type(processor).__name__)
