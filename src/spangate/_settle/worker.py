"""The threads of a gate: one judges, one sends for each exporter, so that none that is slow holds up others."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from spangate._buffer import Buffer
from spangate._release.fan_out import FanOut
from spangate._release.flush import Flush
from spangate._settle import Settler

_logger = logging.getLogger("spangate")
_STEP_S = 0.02
"""How often a flush that waits for open spans looks again."""
_LAST_S = 1.0
"""How long a thread is waited for that should have ended by now."""
_MAX_FAILURES = 3
"""After so many failures in a row everything that is held is given up."""


class Worker:
    """Runs the settler and the sender in daemon threads, or in the caller's where threads can no longer start.

    ``pending_s`` is how long it sleeps while something waits to be settled, ``idle_s`` while nothing does.
    ``has_started`` says that something has been held, ``wants_start`` that not all threads run: where none can be
    started, it is worth another try with each tree. Whoever settles holds ``_serving``.
    """

    def __init__(
        self, buffer: Buffer, settler: Settler, sender: FanOut, clock: Callable[[], float], *, pending_s: float
    ) -> None:
        self._buffer = buffer
        self._settler = settler
        self._sender = sender
        self._clock = clock
        self._idle_s = 1.0
        self._pending_s = min(max(pending_s, _STEP_S), self._idle_s)
        self.reset()

    def reset(self) -> None:
        """Have no threads and no flush: what a forked child starts with."""
        self._judge_thread = threading.Thread(target=self._judge, name="spangate-judge", daemon=True)
        exporting = [threading.Thread(target=body, name="spangate-export", daemon=True) for body in self._sender.bodies]
        self._threads = (self._judge_thread, *exporting)
        self._starting = threading.Lock()
        self._serving = threading.Lock()
        self._server: threading.Thread | None = None
        self._flushes: queue.SimpleQueue[Flush] = queue.SimpleQueue()
        self._stopping = False
        self._failures = 0
        self.has_started = False
        self.wants_start = True

    def start(self) -> None:
        """Start the threads. Without them (too many there are, or the interpreter is leaving) flushes do the work."""
        if not self._starting.acquire(blocking=False):
            return  # another thread is at it
        try:
            self.has_started = True
            for thread in self._threads:
                if thread.ident is None:
                    thread.start()
            self.wants_start = False
        except RuntimeError:  # "can't start new thread"
            _logger.debug("no thread can be started; runs are judged at the next flush")
        finally:
            self._starting.release()

    def outside(self, task: Callable[[], None]) -> None:
        """Do something that waits for the threads: at once, but aside if the caller is one of them."""
        if self._is_inside():
            threading.Thread(target=task, name="spangate-aside", daemon=True).start()
        else:
            task()

    def _is_inside(self) -> bool:
        return threading.current_thread() in (*self._threads, self._server)

    def flush(self, flush: Flush) -> bool:
        """Have everything judged and exported; True if it was, in time. Whoever would wait for itself does not wait."""
        if self._is_inside():
            return False
        if all(thread.is_alive() for thread in self._threads):
            self._flushes.put(flush)
            self._buffer.wake()
            with self._buffer.let_go():
                return flush.wait(flush.deadline - self._clock())
        if not self._serving.acquire(timeout=max(flush.deadline - self._clock(), 0.0)):
            return False
        self._server = threading.current_thread()
        try:
            self._serve([flush])
            self._sender.drain(flush.deadline - self._clock())
        finally:
            self._server = None
            self._serving.release()
        return flush.wait(flush.deadline - self._clock())

    def close(self, deadline: float) -> None:
        """End the threads and shut the exporter down, in the judging thread, for it may hang; bounded."""
        self._stopping = True
        self._buffer.wake()
        self._sender.stop()
        if not self._judge_thread.is_alive():
            self._sender.close()
        with self._buffer.let_go():
            for thread in self._threads:
                if thread.ident is not None:
                    thread.join(max(deadline - self._clock(), _LAST_S))

    def _judge(self) -> None:
        while not self._stopping:
            self._buffer.wait(self._pending_s, self._idle_s)
            with self._serving:
                flushes = self._take_flushes()
                if flushes:
                    self._serve(flushes)
                else:
                    self._tick(None)
        self._sender.close()

    def _take_flushes(self) -> list[Flush]:
        return [self._flushes.get() for _ in range(self._flushes.qsize())]

    def _serve(self, flushes: list[Flush]) -> None:
        """Settle until nothing can be settled before the deadlines, and pass each flush on when that is so for it."""
        while flushes:
            waiting = self._tick(max(flushes, key=lambda flush: flush.closing))
            patient = [flush for flush in flushes if not flush.closing and flush.gains_from(waiting)]
            for flush in flushes:
                if flush not in patient:
                    flush.complete = flush.complete and (flush.closing or not waiting)
                    flush.settled(self._sender.put_flush)
            flushes = patient
            if flushes:
                self._buffer.wait(_STEP_S, _STEP_S)
                flushes = [*flushes, *self._take_flushes()]

    def _tick(self, flush: Flush | None) -> list[float]:
        """Settle once. A defect must not end judging for good, nor let pile up what it keeps from being settled."""
        self._sender.expect_more()
        try:
            waiting = self._settler.tick(self._clock(), flush)
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever runs here, gates and callbacks too, may raise what ends a thread
            _logger.exception("the gate could not settle what it holds; it goes on")
            self._failures += 1
            if self._failures >= _MAX_FAILURES:
                self._settler.give_up()
            if flush is not None:
                flush.complete = False
            return []
        finally:
            self._sender.expect_no_more()
        self._failures = 0
        return waiting
