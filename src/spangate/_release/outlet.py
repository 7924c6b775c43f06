"""How log records leave: lined up by whoever emits or decides them, sent by one thread, every loss counted.

Whoever logs may hold locks of the logging module, and whoever exports may log. So nobody who lines up a record waits
for the exporter, and nothing is logged while a lock of this module is held.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._buffer.kept import Kept
from spangate._log_telemetry import LogTelemetry
from spangate._records import LogRecord
from spangate._release import CHUNK_SPANS, Sender
from spangate._release.chunks import Parcel
from spangate._release.flush import Flush
from spangate._release.line import Line
from spangate._sdk.log_records import log_record, made_sendable

LINGER_S: Final = 0.2
"""How long a record waits at most for others, so that a program that logs a line at a time makes few export calls."""
_LAST_S: Final = 1.0
"""How long a thread is waited for that should have ended by now."""
_STOP: Final = object()
_logger = logging.getLogger("spangate")


class Outlet:
    """Takes log records, and is the only one that calls their exporter. Nothing here raises or blocks but a flush.

    ``max_bytes`` is how much may wait. ``_waiting`` is how much does, ``_lost_so_far`` is what was lost when a flush
    was last answered.
    """

    def __init__(self, exporter: SpanExporter, max_bytes: int, telemetry: LogTelemetry) -> None:
        self._telemetry = telemetry
        self._max_bytes = max_bytes
        self._sender = Sender(exporter, sys.maxsize)
        self._sender.then = self._answer
        self.reset()

    def reset(self) -> None:
        """Forget what waits, and have no thread: what a forked child starts with."""
        self._sender.reset()
        self._line = Line()
        self._counting = threading.RLock()  # a finalizer may log while this thread holds it
        self._waiting = 0
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="spangate-logs", daemon=True)
        self._server: threading.Thread | None = None
        self._hurry = threading.Event()
        self._is_closing = False
        self._lost_so_far = 0

    def record_of(self, kept: Kept) -> LogRecord:
        """Read a record."""
        return log_record(kept.source, span_ended=kept.span_ended)

    def release(self, kept: Kept) -> None:
        """Line up a record."""
        with self._counting:
            is_taken = not self._waiting or self._waiting + kept.weight <= self._max_bytes
            if is_taken and not self._is_closing:
                self._waiting += kept.weight
                self._line.put(kept)
        if self._is_closing or not is_taken:
            self._telemetry.lose(1, "shutdown" if self._is_closing else "backlog")
            return
        if len(self._line) >= CHUNK_SPANS:
            self._hurry.set()
        if self._thread.ident is None:
            self._start()

    def withhold(self, records: int) -> None:
        """Count records of a refused run."""
        self._telemetry.withhold(records)

    def lose(self, records: int, reason: str) -> None:
        """Count records that are gone."""
        self._telemetry.lose(records, reason)

    def _start(self) -> None:
        """Start the thread. Without it (too many there are, or the interpreter is leaving) flushes do the work."""
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread.ident is None:
                self._thread.start()
        except RuntimeError:  # "can't start new thread"
            _logger.debug("no thread can be started; log records leave at the next flush")
        finally:
            self._starting.release()

    @property
    def is_inside(self) -> bool:
        """Whether the caller is whoever sends: it would wait for itself."""
        return threading.current_thread() in (self._thread, self._server)

    def flush(self, flush: Flush) -> bool:
        """Have everything sent that is lined up now; True if all was accepted since the last time, in time."""
        if self.is_inside:
            return False
        self._line.put(flush)
        self._hurry.set()
        if not self._thread.is_alive():
            self._deliver_here(flush.deadline)
        return flush.wait(flush.deadline - time.monotonic())

    def close(self, deadline: float) -> None:
        """Send what is lined up, with one try each, and shut the exporter down; bounded. What is left counts as lost.

        A second call does nothing.
        """
        if self._is_closing:
            return
        self._sender.hurry()
        is_sent = self.flush(Flush(deadline))
        with self._counting:
            self._is_closing = True
        if not is_sent and self._waiting:
            self._sender.abandon()
        self._lose_rest()
        self._line.put(_STOP)
        self._hurry.set()
        _aside(self._sender.close, max(deadline - time.monotonic(), _LAST_S))
        if self._thread.ident is not None and not self.is_inside:
            self._thread.join(_LAST_S)

    def _lose_rest(self) -> None:
        """Count what came too late for the last flush, or for which there was no time."""
        left = 0
        while (item := self._line.take()) is not None:
            if isinstance(item, Kept):
                left += 1
            elif isinstance(item, Flush):
                item.complete = False
                item.finish()
        if left:
            self._telemetry.lose(left, "shutdown")

    def _run(self) -> None:
        while not self._is_closing:
            self._line.wait()
            self._hurry.wait(LINGER_S)
            with self._line.turn:
                self._deliver()

    def _deliver_here(self, deadline: float) -> None:
        patience_s = max(deadline - time.monotonic(), 0.0)
        if self._line.turn.acquire(timeout=min(patience_s, threading.TIMEOUT_MAX)):
            self._server = threading.current_thread()
            try:
                self._deliver(patience_s)
            finally:
                self._server = None
                self._line.turn.release()

    def _deliver(self, patience_s: float = float("inf")) -> None:
        """Send what is lined up, as much at a time as fits in a call."""
        self._hurry.clear()
        while (item := self._line.take()) is not None:
            weight = taken = 0
            while isinstance(item, Kept):
                self._line_up(item)
                weight, taken = weight + item.weight, taken + 1
                item = self._line.take() if taken < CHUNK_SPANS else None
            if isinstance(item, Flush):
                self._sender.put_flush(item)
            self._sender.drain(patience_s)
            with self._counting:
                self._waiting -= weight
            if item is _STOP:
                return

    def _line_up(self, kept: Kept) -> None:
        """Give the sender a parcel of one record: where the exporter chokes on it, it chokes on it alone."""

        def refused(_sent: int, why: str) -> None:
            self._telemetry.lose(1, why)

        try:
            record = made_sendable(kept.source)
        except Exception:  # a body may be anything, and do anything when it is looked at
            _logger.exception("a log record could not be made ready to leave")
            self._telemetry.lose(1, "defect")
        else:
            self._sender.put(Parcel((record,), (kept.weight,), lambda: self._telemetry.release(1), refused))

    def _answer(self, flush: Flush) -> None:
        lost = sum(count for reason, count in self._telemetry.lost.copy().items() if reason != "exporting")
        flush.complete = flush.complete and lost == self._lost_so_far
        self._lost_so_far = lost
        flush.finish()


def _aside(act: Callable[[], None], patience_s: float) -> None:
    """Do something that may hang in a thread of its own, and wait for it so long; here, where none can start."""
    thread = threading.Thread(target=act, name="spangate-aside", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        act()
    else:
        thread.join(patience_s)
