"""What the log processor says of itself: metrics, and every lost log record counted by its reason."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from opentelemetry.metrics import get_meter

from spangate._telemetry import logger
from spangate._version import __version__

_UNIT: Final = "{log_record}"
_LOSSES: Final = {
    "backlog": "more of them wait for the exporter than max_held_bytes allows",
    "overload": "more of them are held with runs than max_held_bytes allows",
    "shutdown": "the shutdown waited for them no longer",
    "refused": "the exporter refused them",
    "defect": "they could not be judged or made ready to leave, which is a defect of spangate",
    "after_shutdown": "they came after the shutdown",
    "exporting": "the exporter logs what it does while it exports, and exporting that would never end",
    "hook_error": "on_emit failed on them, which is a defect of spangate",
}


class LogTelemetry:
    """Counts log records, by the OpenTelemetry metrics API and for whoever asks.

    ``joined`` counts those that named a span that was live, ``released`` those that the exporter accepted, ``withheld``
    those that a refused run keeps back, ``lost`` those that went nowhere, by reason. Many threads count.
    """

    def __init__(self) -> None:
        self.reset()
        meter = get_meter("spangate", __version__)
        self._joined = meter.create_counter("spangate.log_records.joined", _UNIT, "Log records that joined a live span")
        self._released = meter.create_counter("spangate.log_records.released", _UNIT, "Log records that were accepted")
        self._withheld = meter.create_counter("spangate.log_records.withheld", _UNIT, "Log records of refused runs")
        self._lost = meter.create_counter("spangate.log_records.lost", _UNIT, "Log records that went nowhere")

    def reset(self) -> None:
        """Count from nothing: what was lost before a fork, the parent tells."""
        self._lock = threading.RLock()  # a finalizer may log, and so count, while this thread holds it
        self.lost: Counter[str] = Counter()
        self.joined = self.released = self.withheld = 0

    def join(self) -> None:
        """Count a record that named a live span."""
        with self._lock:
            self.joined += 1
        self._joined.add(1)

    def release(self, records: int) -> None:
        """Count records that the exporter has accepted."""
        with self._lock:
            self.released += records
        self._released.add(records)

    def withhold(self, records: int) -> None:
        """Count records that a verdict keeps back."""
        with self._lock:
            self.withheld += records
        self._withheld.add(records)

    def lose(self, records: int, reason: str) -> None:
        """Count records that are gone; with a log line at each power of two, which is a record, too, and may be next.

        That line is written when no lock is held: whoever logs holds locks of its own.
        """
        with self._lock:
            before = self.lost[reason]
            after = self.lost[reason] = before + records
        self._lost.add(records, {"reason": reason})
        if before.bit_length() < after.bit_length():
            why = _LOSSES.get(reason, f"the exporter {reason}")
            noun = "log record" if after == 1 else "log records"
            logger.warning("%d %s lost so far: %s (reason %r)", after, noun, why, reason)
