"""The SDK's log records: all that is known here of a part of the SDK that is not stable yet, and may move.

The names are those of 1.39, when they were last changed, and of every version since.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry import baggage, context
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangate._errors import SpangateError
from spangate._keys import RUN_ID
from spangate._payload import mapping_bytes, text_bytes, value_bytes
from spangate._records import LogRecord
from spangate._sdk.odd import clean_text, is_sendable, nanoseconds, sendable, text

try:
    from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
    from opentelemetry.sdk._logs.export import LogRecordExporter
except ImportError as error:
    raise SpangateError(
        "this version of opentelemetry-sdk keeps log records elsewhere: GateLogRecordProcessor works with 1.39 to 1.45"
    ) from error

__all__ = ["LogRecordExporter", "LogRecordProcessor", "LogWay", "ReadWriteLogRecord", "ReadableLogRecord"]

_EXPORTING: Final = context.create_key("spangate-log-export")
_EVENT_NAME: Final = "event.name"
_MAX_DEPTH: Final = 16
_PLAIN: Final = (str, bool, float, bytes, type(None))
_INT64: Final = range(-(1 << 63), 1 << 63)


class LogWay(SpanExporter):
    """An exporter of log records as whatever sends spans calls it; what it logs itself while it exports is known."""

    def __init__(self, exporter: LogRecordExporter) -> None:
        self._exporter: Any = exporter

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Export log records. Raises what the exporter raises."""
        token = context.attach(context.set_value(_EXPORTING, True))  # noqa: FBT003  a context value, not a flag of ours
        try:
            result = self._exporter.export(spans)
        finally:
            context.detach(token)
        is_refused = getattr(result, "name", "") == "FAILURE"  # of either of two enums, the older one deprecated
        return SpanExportResult.FAILURE if is_refused else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter, if it knows how to."""
        flush = getattr(self._exporter, "force_flush", None)
        return True if flush is None else flush(timeout_millis) is not False

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()


def is_exporting() -> bool:
    """Say whether whoever runs now is such an exporter."""
    return bool(context.get_value(_EXPORTING))


def readable(record: ReadWriteLogRecord) -> ReadableLogRecord:
    """Return a record as exporters take it.

    It is a copy without the context, as the SDK's own processors make it: a context may hold on to much.
    """
    api = copy.copy(record.log_record)
    api.context = Context()
    resource = Resource.create({}) if record.resource is None else record.resource
    return ReadableLogRecord(api, resource, record.instrumentation_scope, record.limits)


def ids_of(record: ReadWriteLogRecord) -> tuple[int, int]:
    """Return the trace id and the span id that a record names, 0 where it names none."""
    api = record.log_record
    return api.trace_id or 0, api.span_id or 0


def run_id_of(record: ReadWriteLogRecord) -> str | None:
    """Return the run id that a record has in its baggage."""
    found = baggage.get_baggage(RUN_ID, record.log_record.context)
    return found if isinstance(found, str) else None


def record_bytes(record: ReadWriteLogRecord) -> int:
    """Return what the body and the attributes of a record weigh."""
    api = record.log_record
    body = text_bytes(api.body) if isinstance(api.body, str) else value_bytes(api.body)
    attributes: Any = api.attributes
    if isinstance(attributes, BoundedAttributes):
        attributes = attributes.copy()  # in C: to walk through the SDK's own costs ten times as much
    return body + (mapping_bytes(attributes) if attributes else 0)


def log_record(record: ReadableLogRecord, *, span_ended: bool) -> LogRecord:
    """Read a record. Its attributes are not copied: nobody changes them any more."""
    api: Any = record.log_record
    attributes: Mapping[str, Any] = api.attributes or {}
    severity = getattr(api.severity_number, "value", api.severity_number)
    return LogRecord(
        trace_id=api.trace_id or 0,
        span_id=api.span_id or 0,
        time_ns=nanoseconds(api.timestamp) or nanoseconds(api.observed_timestamp) or 0,
        severity=severity if isinstance(severity, int) else 0,
        severity_text=text(api.severity_text or ""),
        body=api.body,
        attributes=attributes,
        event_name=text(api.event_name or attributes.get(_EVENT_NAME) or ""),
        span_ended=span_ended,
    )


def made_sendable(record: ReadableLogRecord) -> ReadableLogRecord:
    """Return a record without what no encoder takes: it would lose the whole batch over it."""
    api: Any = record.log_record
    body = _sendable(api.body, 0)
    changed: dict[str, Any] = {} if body is api.body else {"body": body}
    for name in ("event_name", "severity_text"):
        value = getattr(api, name)
        if value is not None and not (isinstance(value, str) and value.isascii()):
            changed[name] = clean_text(value)
    for name in ("timestamp", "observed_timestamp"):
        value = getattr(api, name)
        if value is not None and not is_sendable(value):
            changed[name] = sendable(value)
    if not changed:
        return record
    api = copy.copy(api)
    for name, value in changed.items():
        setattr(api, name, value)
    return ReadableLogRecord(api, record.resource, record.instrumentation_scope, record.limits)


def _sendable(value: Any, depth: int) -> Any:
    """Return a body as it is where it can be sent, else what comes nearest."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, _PLAIN) or (isinstance(value, int) and value in _INT64):
        return value
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        return {clean_text(key): _sendable(item, depth + 1) for key, item in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [_sendable(item, depth + 1) for item in value]
    return clean_text(value)
