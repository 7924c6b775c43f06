"""The two threads of a gate: one judges, one exports, so that a slow exporter never holds up a judgement."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from spangate._buffer import Buffer
from spangate._flush import Flush
from spangate._release import Sender
from spangate._settle import Settler

_logger = logging.getLogger("spangate")
_STEP_S = 0.02
"""How often a flush that waits for open spans looks again."""


class Worker:
    """Runs the settler and the sender in daemon threads, or in the caller's where threads can no longer start.

    ``pending_s`` is how long it sleeps while something waits to be settled, ``idle_s`` while nothing does.
    """

    def __init__(
        self, buffer: Buffer, settler: Settler, sender: Sender, clock: Callable[[], float], *, pending_s: float
    ) -> None:
        self._buffer = buffer
        self._settler = settler
        self._sender = sender
        self._clock = clock
        self._pending_s = max(pending_s, _STEP_S)
        self._idle_s = 1.0
        self.reset()

    def reset(self) -> None:
        """Have no threads and no flush: what a forked child starts with."""
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._flushes: queue.SimpleQueue[Flush] = queue.SimpleQueue()
        self._stopping = False
        self.has_started = False

    def start(self) -> None:
        """Start the threads, once. Without them (the interpreter is leaving) the next flush does the work."""
        with self._starting:
            if self.has_started:
                return
            self.has_started = True
        threads = [
            threading.Thread(target=self._judge, name="spangate-judge", daemon=True),
            threading.Thread(target=self._sender.run, name="spangate-export", daemon=True),
        ]
        try:
            for thread in threads:
                thread.start()
                self._threads.append(thread)
        except RuntimeError:  # "can't start new thread"
            _logger.debug("no thread can be started; runs are judged at the next flush")

    def flush(self, flush: Flush) -> bool:
        """Have everything judged and exported; True if it was, in time."""
        if len(self._threads) == 2 and all(thread.is_alive() for thread in self._threads):  # noqa: PLR2004  see start
            self._flushes.put(flush)
            self._buffer.wake()
            return flush.wait(flush.deadline - self._clock())
        self._serve([flush])
        self._sender.drain()
        return flush.wait(0.0)

    def stop(self) -> None:
        """Let the threads end."""
        self._stopping = True
        self._buffer.wake()
        self._sender.stop()

    def _judge(self) -> None:
        while not self._stopping:
            self._buffer.wait(self._pending_s, self._idle_s)
            flushes = self._take_flushes()
            try:
                self._serve(flushes) if flushes else self._settler.tick(self._clock())
            except Exception:  # the thread is an entry of its own: a defect here must not end judging for good
                _logger.exception("the gate could not settle what it holds; it goes on")

    def _take_flushes(self) -> list[Flush]:
        return [self._flushes.get() for _ in range(self._flushes.qsize())]

    def _serve(self, flushes: list[Flush]) -> None:
        """Settle until nothing can be settled before the deadlines, and pass each flush on when that is so for it."""
        try:
            while flushes:
                waiting = self._settler.tick(self._clock(), max(flushes, key=lambda flush: flush.closing))
                patient = [flush for flush in flushes if not flush.closing and flush.gains_from(waiting)]
                for flush in flushes:
                    if flush not in patient:
                        flush.complete = flush.complete and (flush.closing or not waiting)
                        self._sender.put_flush(flush)
                flushes = patient
                if flushes:
                    self._buffer.wait(_STEP_S, _STEP_S)
                    flushes = [*flushes, *self._take_flushes()]
        except Exception:
            for flush in flushes:
                flush.complete = False
                self._sender.put_flush(flush)
            raise
