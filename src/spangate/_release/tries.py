"""Patience with one exporter: a call that is refused is made again, with pauses that grow, as long as there is time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._pace import Pace
from spangate._release.attempt import try_export
from spangate._release.chunks import Refusal
from spangate._sdk.quick_export import WayOut

TRIES = 4
BACKOFF_S = 0.25
"""Pause after the first refusal; each further one is twice as long."""


class Tries:
    """Calls one exporter. Without time for a pause it is tried once, and not at all any more once it was given up.

    ``rest`` lets other threads in, where there is time for that; everything on the way to the exporter shares it.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self.rest = Pace(self.is_hurried)
        self._export = WayOut(exporter, self.rest)
        self.reset()

    def reset(self) -> None:
        """Have all the time in the world."""
        self._hurry = threading.Event()
        self._patient_until = math.inf
        self._abandoned = False

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
        refusal = None
        for number in range(TRIES if spans else 0):
            if number and not self._pause(BACKOFF_S * 2 ** (number - 1)):
                break
            refusal = Refusal("shutdown") if self._abandoned else try_export(self._export, spans)
            if refusal is None or refusal.is_choked:
                break
        return refusal

    def _pause(self, seconds: float) -> bool:
        """Wait, if there is time for that. False if there is to be no further try."""
        return seconds <= self._patient_until - time.monotonic() and not self._hurry.wait(seconds)
