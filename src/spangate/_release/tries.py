"""Patience with one exporter: what it may take later is offered again, with pauses that grow, as long as there is time.

Nothing is lost while a collector restarts: spans that it could not be given wait, and those behind them, within
``max_held_bytes``. What is refused for a reason that will not pass is offered a few times only.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._pace import Pace
from spangate._release.attempt import try_export
from spangate._release.chunks import Refusal
from spangate._sdk.quick_export import WayOut

TRIES: Final = 4
"""Calls for spans that are refused for a reason that is unknown, or that lasts."""
BACKOFF_S = 0.25
"""Pause after the first refusal; each further one is twice as long."""
LONGEST_PAUSE_S: Final = 15.0

_WHAT: Final = {
    "passing": "spans wait, and are offered again",
    "too_large": "spans go in smaller requests",
    "lasting": "spans are refused",
    "choked": "spans cannot be written",
    "unknown": "spans are refused",
}

_logger = logging.getLogger("spangate")


class Tries:
    """Calls one exporter. Without time for a pause it is tried once, and not at all any more once it was given up.

    ``rest`` lets other threads in, where there is time for that; everything on the way to the exporter shares it.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self.rest = Pace(self.is_hurried)
        self._name = type(exporter).__name__
        self._export = WayOut(exporter, self.rest)
        self.reset()

    def reset(self) -> None:
        """Have all the time in the world."""
        self._hurry = threading.Event()
        self._patient_until = math.inf
        self._abandoned = False
        self._failing_since: float | None = None
        self._told: set[str] = set()

    def hurry(self) -> None:
        """Pause no more."""
        self._hurry.set()

    def is_hurried(self) -> bool:
        """Say whether there is no time left for pauses."""
        return self._hurry.is_set()

    def be_patient_for(self, seconds: float) -> None:
        """Have time for pauses for so long."""
        self._patient_until = time.monotonic() + seconds

    def abandon(self) -> None:
        """Send nothing any more."""
        self._abandoned = True

    def export(self, spans: Sequence[Any]) -> Refusal | None:
        """Export some spans, patiently. Returns None if they were accepted."""
        if not spans:
            return None
        for number in itertools.count(1):
            refusal = Refusal("shutdown", "lasting") if self._abandoned else try_export(self._export, spans)
            self._tell(refusal)
            if refusal is None or refusal.nature in {"choked", "too_large"}:
                return refusal
            is_worth_it = number < TRIES or refusal.nature == "passing"
            if not is_worth_it or not self._pause(min(BACKOFF_S * 2 ** min(number - 1, 16), LONGEST_PAUSE_S)):
                return refusal
        return None

    def _pause(self, seconds: float) -> bool:
        """Wait, if there is time for that. False if there is to be no further try."""
        return seconds <= self._patient_until - time.monotonic() and not self._hurry.wait(seconds)

    def _tell(self, refusal: Refusal | None) -> None:
        """Log when trouble with the exporter begins, and when it is over. That some spans are too many is told once."""
        if refusal is None:
            if self._failing_since is not None:
                _logger.info("%s: accepts again, after %.1f s", self._name, time.monotonic() - self._failing_since)
                self._failing_since = None
                self._told &= {"too_large"}
        elif refusal.said and refusal.nature not in self._told:
            self._told.add(refusal.nature)
            if refusal.nature != "too_large":
                self._failing_since = self._failing_since or time.monotonic()
            _logger.warning("%s: %s (%s: %s)", self._name, _WHAT[refusal.nature], refusal.why, refusal.said)
