"""What the log records of a run tell: which of them do not fit its spans, and messages that its model calls lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spangate._dialects import dialect_of
from spangate._dialects._events import BODY, MESSAGE_EVENTS
from spangate._payload import span_bytes
from spangate._records import ABSENT, Event, Finding, LogRecord, Span
from spangate._run import Run
from spangate._units import counted, duration


def notes_on(run: Run, records: Sequence[LogRecord]) -> Iterator[Finding]:
    """Yield what is to be said of records that name no span of the run, or one that had ended by then."""
    by_id = run.by_id
    after: Counter[Span] = Counter()
    first_after: dict[Span, LogRecord] = {}
    orphans: list[LogRecord] = []
    for record in records:
        span = by_id.get(record.trace_id, {}).get(record.span_id)
        if span is None:
            if not _is_around(run.root, record):
                orphans.append(record)
        elif record.span_ended:
            after[span] += 1
            first_after.setdefault(span, record)
    if orphans:
        yield Finding("logs.orphan_record", run.root, _what_is_orphaned(orphans))
    for span, count in after.items():
        late_ns = max(0, first_after[span].time_ns - (span.end_ns or 0))
        what = f"{counted(count, 'log record')} came when it had ended, the first {duration(late_ns)} after"
        yield Finding("logs.after_close", span, what)


def _is_around(root: Span, record: LogRecord) -> bool:
    """Say whether a record names the span of another process in which the run was started."""
    return root.parent_remote and record.span_id == root.parent_id


def _what_is_orphaned(orphans: Sequence[LogRecord]) -> str:
    first = orphans[0]
    named = f"span {first.span_id:016x}, which is none of its spans" if first.span_id else "no span"
    return f"{counted(len(orphans), 'log record')} of the run could be given to no span: the first names {named}"


def give_messages(run: Run, records: Iterable[LogRecord]) -> None:
    """Give model calls that record no messages themselves those that were emitted for them, as span events.

    They are evidence only: what a span weighs is told first, and what leaves is the span as it was recorded.
    """
    told: dict[tuple[int, int], list[LogRecord]] = {}
    for record in records:
        if record.event_name in MESSAGE_EVENTS:
            told.setdefault((record.trace_id, record.span_id), []).append(record)
    for (trace_id, span_id), emitted in told.items():
        span = run.by_id.get(trace_id, {}).get(span_id)
        if span is not None and span.role == "generation" and not _tells_messages(span):
            span_bytes(span)
            span.events = [*span.events, *map(_as_event, emitted)]


def _tells_messages(span: Span) -> bool:
    dialect = dialect_of(span)
    turn = dialect.turn(span)
    return turn.asked is not None or turn.received is not None or dialect.request(span).messages is not ABSENT


def _as_event(record: LogRecord) -> Event:
    """Return a record as the event that an instrumentation would have put on the span. What it says is its body."""
    body: Any = record.body
    if isinstance(body, Mapping):
        said = {key: value for key, value in body.items() if isinstance(key, str)}
        return Event(record.event_name, said, record.time_ns)
    if isinstance(body, str):
        return Event(record.event_name, {BODY: body}, record.time_ns)
    return Event(record.event_name, record.attributes, record.time_ns)
