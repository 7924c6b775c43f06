"""Handing decided spans to an exporter: in chunks, from one thread, every result checked, every loss counted.

Never through a batch processor: that drops what does not fit its queue and reports success (measured).
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._release.attempt import attempt
from spangate._release.chunks import Chunk, Parcel, Refusal, Row, chunks
from spangate._release.flush import Flush
from spangate._release.line import Line
from spangate._release.tries import Tries

CHUNK_SPANS = 512
"""Spans of one export call at most, as the batch processor's default."""
CHUNK_BYTES = 2 << 20
"""Bytes of one export call, by our measure: half of what a gRPC receiver takes by default (4 MiB)."""
_LEAST_BYTES = 64 << 10
"""Bytes of one export call to a receiver that takes less, as many a proxy before it does, at least."""
LINGER_S = 0.1
"""How long parcels wait at most for those that are being decided: two threads that compute slow each other down."""

_STRIDE = 64
"""So many spans are made ready to leave without a rest: about a millisecond of work."""

_logger = logging.getLogger("spangate")
_STOP = object()


def _weight(row: Row) -> int:
    parcel, start, stop = row
    return sum(parcel.sizes[start:stop])


class Sender:
    """Owns the exporter: nobody else calls it, and it is never called twice at once.

    ``max_bytes`` is how much may wait here; beyond it parcels are refused at the door, with the reason ``backlog``.
    A parcel that was taken out of ``_in_hand`` is answered for by whoever took it out. ``then`` is done with a flush
    that was answered here.
    """

    def __init__(self, exporter: SpanExporter, max_bytes: int) -> None:
        self._exporter = exporter
        self._tries = Tries(exporter)
        self._max_bytes = max_bytes
        self._rest = self._tries.rest
        self.then: Callable[[Flush], None] = Flush.finish
        self.reset()

    def reset(self) -> None:
        """Forget what waits: after a fork it belongs to the parent."""
        self._line = Line()
        self._in_hand: dict[Parcel, int] = {}
        self._tries.reset()
        self._chunk_bytes = CHUNK_BYTES
        self._all_here = threading.Event()
        self._all_here.set()
        self._taken_in = self._dealt_with = 0  # bytes; each of these four is written by one thread alone
        self._turned_away = self._undelivered = 0  # parcels
        self._told = 0

    def put(self, parcel: Parcel) -> None:
        """Line up a parcel."""
        if not parcel.spans:
            parcel.delivered()
            return
        if not self._take_in(parcel):
            self._turned_away += 1
            instead = parcel.refused(0, "backlog")
            if instead is not None:
                self._take_in(instead)

    def _take_in(self, parcel: Parcel) -> bool:
        weight = parcel.weight
        waiting = self._taken_in - self._dealt_with
        if waiting and waiting + weight > self._max_bytes:
            return False
        self._taken_in += weight
        self._line.put(parcel)
        return True

    def expect_more(self) -> None:
        """Wait a moment for what is decided now, so that it leaves together, until :meth:`expect_no_more`."""
        self._all_here.clear()

    def expect_no_more(self) -> None:
        """Send what is lined up."""
        self._all_here.set()

    def put_flush(self, flush: Flush) -> None:
        """Answer ``flush`` when everything that is lined up now has been dealt with."""
        self._line.put(flush)

    def hurry(self) -> None:
        """Pause no more between tries, and try only once: the process is about to end."""
        self._tries.hurry()
        self._all_here.set()

    def stop(self) -> None:
        """Let :meth:`run` return once everything before has been dealt with."""
        self._line.put(_STOP)

    def abandon(self) -> None:
        """Give up what has not left by now. It counts as lost, and nothing is sent any more."""
        self._tries.abandon()
        self._give_up("shutdown")
        while (item := self._line.take()) is not None:
            if isinstance(item, Parcel):
                item.refused(0, "shutdown")
            elif isinstance(item, Flush):
                item.complete = False
                item.finish()
        self.stop()

    def _give_up(self, why: str) -> None:
        for parcel in list(self._in_hand):
            sent = self._in_hand.pop(parcel, None)
            if sent is not None:
                attempt(partial(parcel.refused, sent, why))

    def close(self) -> None:
        """Shut the exporter down."""
        _, error = attempt(self._exporter.shutdown)
        if error is not None:
            _logger.warning("the exporter's shutdown raised %s", type(error).__name__)

    def run(self) -> None:
        """Send parcels until :meth:`stop`. The body of the sender's thread."""
        goes_on = True
        while goes_on:
            self._line.wait()
            if not self._tries.is_hurried():
                self._all_here.wait(LINGER_S)
            with self._line.turn:
                goes_on = self._step()

    def drain(self, patience_s: float = math.inf) -> None:
        """Send what is lined up, in the calling thread: for when threads can no longer start.

        After ``patience_s`` seconds there are no more pauses between tries, and a thread that is at it is waited for no
        longer.
        """
        self._tries.be_patient_for(patience_s)
        if self._line.turn.acquire(timeout=min(max(patience_s, 0.0), threading.TIMEOUT_MAX)):
            try:
                while self._line:
                    if not self._step():
                        self.stop()  # that was meant for the thread
                        break
            finally:
                self._line.turn.release()

    def _step(self) -> bool:
        parcels, rest = self._gather()
        try:
            self._send(parcels)
        except Exception:  # the thread is an entry of its own: a defect here must not end exporting for good
            _logger.exception("the gate could not hand on what it had decided; it goes on")
            self._undelivered += 1
            self._give_up("defect")
        self._dealt_with += sum(parcel.weight for parcel in parcels)
        if isinstance(rest, Flush):
            self._answer(rest)
        return rest is not _STOP

    def _gather(self) -> tuple[list[Parcel], object]:
        """Take the parcels that are lined up already, so that small runs share export calls, and what stands next."""
        parcels: list[Parcel] = []
        while len(parcels) < CHUNK_SPANS:
            item = self._line.take()
            if not isinstance(item, Parcel):
                return parcels, item
            parcels.append(item)
        return parcels, None

    def _send(self, parcels: Sequence[Parcel]) -> None:
        self._in_hand.update(dict.fromkeys(parcels, 0))
        instead: list[Parcel] = []
        for chunk in chunks(parcels, CHUNK_SPANS, self._chunk_bytes):
            self._rest()
            for (parcel, start, stop), refusal in self._offer([row for row in chunk if row[0] in self._in_hand]):
                if parcel not in self._in_hand:
                    continue  # given up meanwhile
                if refusal is None and stop < len(parcel.spans):
                    self._in_hand[parcel] = stop
                    self._let_go((parcel, start, stop))
                elif self._in_hand.pop(parcel, None) is None:
                    continue
                elif refusal is None:
                    parcel.delivered()
                    self._let_go((parcel, start, stop))
                else:
                    self._undelivered += 1
                    substitute = parcel.refused(start, refusal.why)
                    instead += [substitute] if substitute is not None else []
        if instead:
            self._send(instead)

    def _offer(self, due: Chunk) -> Iterator[tuple[Row, Refusal | None]]:
        """Export rows together; if the exporter chokes on one of them, each by itself, so that the others arrive."""
        ready: list[tuple[Row, list[Any]]] = []
        for row in due:
            spans, error = attempt(partial(self._made_ready, row))
            if error is None:
                ready.append((row, spans))
            else:
                _logger.error("spans could not be made ready to leave", exc_info=error)
                yield row, Refusal("defect")
        refusal = self._tries.export([span for _, spans in ready for span in spans])
        if refusal is not None and refusal.nature == "too_large":
            self._chunk_bytes = max(sum(map(_weight, due)) // 2, _LEAST_BYTES)
        is_by_itself = refusal is not None and refusal.nature in {"choked", "too_large"} and len(ready) > 1
        for row, spans in ready:
            yield row, self._in_portions(spans, self._tries.export(spans) if is_by_itself else refusal)
        for _, spans in ready:
            while spans:  # many at once would keep the interpreter busy for long
                del spans[-_STRIDE:]
                self._rest()

    def _in_portions(self, spans: list[Any], refusal: Refusal | None) -> Refusal | None:
        """Export spans that were too many for one call in halves, and their halves."""
        if refusal is None or refusal.nature != "too_large" or len(spans) == 1:
            return refusal
        halves = spans[: len(spans) // 2], spans[len(spans) // 2 :]
        return next(filter(None, (self._in_portions(half, self._tries.export(half)) for half in halves)), None)

    def _made_ready(self, row: Row) -> list[Any]:
        parcel, start, stop = row
        ready: list[Any] = []
        for at in range(start, stop, _STRIDE):
            ready += parcel.spans[at : min(at + _STRIDE, stop)]
            self._rest()
        return ready

    def _let_go(self, row: Row) -> None:
        """Forget what has left, with rests: freeing many spans at once would keep the interpreter busy for long."""
        parcel, start, stop = row
        for at in range(start, stop, _STRIDE):
            parcel.let_go(at, min(at + _STRIDE, stop))
            self._rest()

    def _answer(self, flush: Flush) -> None:
        flushed, error = attempt(self._exporter.force_flush)
        accepted = flushed is not False and error is None
        if error is not None:
            _logger.warning("the exporter's force_flush raised %s", type(error).__name__)
        gone = self._turned_away + self._undelivered
        flush.complete = flush.complete and accepted and gone == self._told
        self._told = gone
        self.then(flush)
