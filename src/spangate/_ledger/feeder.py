"""What a gate does for a ledger: it notes what begins in the block of a guard, and writes down each run that is over.

A ledger that cannot be written costs no run anything, and is waited for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from opentelemetry.context import Context

from spangate._errors import SpangateError
from spangate._ledger import table
from spangate._ledger.book import Book
from spangate._ledger.guard import Guard, current_guard
from spangate._ledger.rows import Attempt
from spangate._ledger.told import Place, Told, told
from spangate._run import Run
from spangate._telemetry import Telemetry, logger

_PATIENCE_S: Final = 1.0
_AT_ONCE: Final = 1024
_MAX_NOTED: Final = 16_384
"""Of so many spans it is remembered that they began in the block of a guard; runs that are judged forget theirs."""


class Feeder:
    """Feeds ``book``. Spans are noted by whoever starts them, the rest is done by the gate's own thread."""

    def __init__(self, book: Book, telemetry: Telemetry) -> None:
        self._book = book
        self._telemetry = telemetry
        self._noted: dict[Place, Attempt] = {}
        self._patience_s = _PATIENCE_S

    def watching(self, on_start: Callable[..., None]) -> Callable[..., None]:
        """Return a hook that does what ``on_start`` does, and notes what begins directly in the block of a guard."""

        def watched(span: Any, parent_context: Context | None = None) -> None:
            guard = current_guard()
            if guard is not None:
                with suppress(Exception):  # an exception would keep the user's code from running
                    self._note(guard, span)
            on_start(span, parent_context)

        return watched

    def _note(self, guard: Guard, span: Any) -> None:
        parent, begun = span.parent, guard.begun
        parent_id = 0 if parent is None else parent.span_id
        if begun is None or guard.path != self._book.path or parent_id != guard.span_id:
            return
        if len(self._noted) >= _MAX_NOTED:
            with suppress(StopIteration, RuntimeError, KeyError):  # another thread is at it
                del self._noted[next(iter(self._noted))]
        self._noted[span.context.trace_id, span.context.span_id] = begun.attempt

    def read(self, run: Run) -> Told | None:
        """Read what a run tells, while it is whole. None if that cannot be done, which is counted."""
        try:
            with self._book.store.reading(self._patience_s) as connection:
                traces = (format(trace_id, "032x") for trace_id in run.by_id)
                guards = [row for trace_id in traces for row in table.awaited(connection, trace_id)]
            return told(run, self._book.terms, guards, self._inside(run))
        except Exception as error:  # noqa: BLE001  whatever it is, the run has nothing to do with it
            self._fail(error, sum(1 for span in run.of_role("tool", "process") if span.end_ns is not None))
            return None

    def write(self, read: Told | None) -> None:
        """Write down what was read, some rows at a time: others wait meanwhile."""
        if read is None:
            return
        written = 0
        try:
            if read.sighted:
                with self._book.store.writing(self._patience_s) as connection:
                    table.sight(connection, read.sighted)
            while written < len(read.fresh):
                some = read.fresh[written : written + _AT_ONCE]
                with self._book.store.writing(self._patience_s) as connection:
                    table.insert_new(connection, some)
                written += len(some)
            self._patience_s = _PATIENCE_S
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error, len(read.fresh) - written)

    def close(self) -> None:
        """Close the file."""
        with suppress(SpangateError):
            self._book.store.close()

    def _inside(self, run: Run) -> dict[Place, Attempt]:
        if not self._noted:
            return {}
        places: Iterable[Place] = ((span.trace_id, span.span_id) for span in run.spans)
        return {place: noted for place in places if (noted := self._noted.pop(place, None)) is not None}

    def _fail(self, error: Exception, calls: int) -> None:
        self._patience_s = 0.0  # nobody is waited for again who was not there the first time
        if not isinstance(error, SpangateError):
            logger.error("a ledger could not be fed, which is a defect of spangate", exc_info=error)
        self._telemetry.leave_out(calls, str(error))
