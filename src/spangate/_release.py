"""Handing decided spans to the exporter: in chunks, from one thread, every result checked, every loss counted.

Never through a batch processor: that drops what does not fit its queue and reports success (measured).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opentelemetry.context import attach, detach, set_value
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangate._flush import Flush

CHUNK_SPANS = 512
"""Spans of one export call at most, as the batch processor's default."""
CHUNK_BYTES = 2 << 20
"""Bytes of one export call, by our measure: half of what a gRPC receiver takes by default (4 MiB)."""
TRIES = 4
BACKOFF_S = 0.25
"""Pause after the first refusal; each further one is twice as long."""

_logger = logging.getLogger("spangate")
_SUPPRESS = "suppress_instrumentation"  # the key that instrumentations of HTTP and gRPC clients look for


@dataclass(frozen=True, eq=False, slots=True)
class Parcel:
    """Spans that belong together: a released run with its root last, a verdict span, or spans that pass untouched.

    ``sizes`` are the bytes of each span. ``delivered`` is called when the exporter has accepted all of them,
    ``refused`` with the number that it did accept, when it has finally refused one; what that returns goes out instead.
    """

    spans: Sequence[Any]
    sizes: Sequence[int]
    delivered: Callable[[], None]
    refused: Callable[[int, str], Parcel | None]


_STOP = object()
_Chunk: TypeAlias = list[tuple[Parcel, int, int]]


class Sender:
    """Owns the exporter: nobody else calls it, and it is never called twice at once.

    ``max_bytes`` is how much may wait here; beyond it parcels are refused at the door, with the reason ``backlog``.
    """

    def __init__(self, exporter: SpanExporter, max_bytes: int) -> None:
        self._exporter = exporter
        self._max_bytes = max_bytes
        self.reset()

    def reset(self) -> None:
        """Forget what waits: after a fork it belongs to the parent."""
        self._queue: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._all_accepted = True
        self._taken_in = self._dealt_with = 0  # bytes; each is written by one thread alone

    def put(self, parcel: Parcel) -> None:
        """Line up a parcel."""
        size = sum(parcel.sizes)
        waiting = self._taken_in - self._dealt_with
        if waiting and waiting + size > self._max_bytes:
            self._all_accepted = False
            parcel.refused(0, "backlog")
            return
        self._taken_in += size
        self._queue.put(parcel)

    def put_flush(self, flush: Flush) -> None:
        """Answer ``flush`` when everything that is lined up now has been dealt with."""
        self._queue.put(flush)

    def hurry(self) -> None:
        """Pause no more between tries, and try only once: the process is about to end."""
        self._hurry.set()

    def stop(self) -> None:
        """Let :meth:`run` return once everything before has been dealt with."""
        self._queue.put(_STOP)

    def run(self) -> None:
        """Send parcels until :meth:`stop`. The body of the sender's thread."""
        while self._step(self._queue.get()):
            pass

    def drain(self) -> None:
        """Send what is lined up, in the calling thread: for when threads can no longer start."""
        while not self._queue.empty():
            self._step(self._queue.get_nowait())

    def _step(self, first: object) -> bool:
        parcels, rest = self._gather(first)
        self._send(parcels)
        if isinstance(rest, Flush):
            self._answer(rest)
        return rest is not _STOP

    def _gather(self, item: object) -> tuple[list[Parcel], object]:
        """Take the parcels that are lined up already, so that small runs share export calls."""
        parcels: list[Parcel] = []
        while isinstance(item, Parcel):
            parcels.append(item)
            if len(parcels) >= CHUNK_SPANS or self._queue.empty():
                return parcels, None
            item = self._queue.get()
        return parcels, item

    def _send(self, parcels: Sequence[Parcel]) -> None:
        failed: set[Parcel] = set()
        instead: list[Parcel] = []
        for chunk in _chunks(parcels):
            due = [row for row in chunk if row[0] not in failed]
            why = self._export([span for parcel, start, stop in due for span in parcel.spans[start:stop]])
            for parcel, start, stop in due:
                if why is not None:
                    failed.add(parcel)
                    self._all_accepted = False
                    substitute = parcel.refused(start, why)
                    instead += [substitute] if substitute is not None else []
                elif stop == len(parcel.spans):
                    parcel.delivered()
        self._dealt_with += sum(sum(parcel.sizes) for parcel in parcels)
        if instead:
            self._send(instead)

    def _export(self, spans: Sequence[Any]) -> str | None:
        """Export one chunk, patiently. Returns None if it was accepted, else why not."""
        pause = BACKOFF_S
        why = "refused"
        for number in range(TRIES if spans else 0):
            if number and self._hurry.wait(pause):
                return why
            pause *= 2
            token = attach(set_value(_SUPPRESS, True))  # noqa: FBT003  a context value, not a flag of ours
            try:
                result = self._exporter.export(spans)
            except Exception as error:  # noqa: BLE001  an exporter may be anybody's; its fault must not end the thread
                why = f"raised {type(error).__name__}"
            else:
                if result is SpanExportResult.SUCCESS:
                    return None
                why = "refused"
            finally:
                detach(token)
        return why if spans else None

    def _answer(self, flush: Flush) -> None:
        try:
            accepted = self._exporter.force_flush() is not False
        except Exception as error:  # noqa: BLE001  an exporter may be anybody's; its fault must not end the thread
            accepted = False
            _logger.warning("the exporter's force_flush raised %s", type(error).__name__)
        flush.complete = flush.complete and accepted and self._all_accepted
        self._all_accepted = True
        flush.finish()


def _chunks(parcels: Sequence[Parcel]) -> Iterator[_Chunk]:
    """Divide parcels into export calls; each row is a parcel and the range of its spans that goes along."""
    chunk: _Chunk = []
    spans = size = 0
    for parcel in parcels:
        start = 0
        for number, weight in enumerate(parcel.sizes):
            if spans and (spans >= CHUNK_SPANS or size + weight > CHUNK_BYTES):
                yield [*chunk, (parcel, start, number)] if number > start else chunk
                chunk, start, spans, size = [], number, 0, 0
            spans += 1
            size += weight
        chunk.append((parcel, start, len(parcel.sizes)))
    if spans:
        yield chunk
