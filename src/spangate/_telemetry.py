"""What the gate says of itself: metrics, one log line a refused run, and every loss counted by its reason."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from spangate._records import Verdict
from spangate._version import __version__

logger = logging.getLogger("spangate")

_LOSSES = {
    "backlog": "more spans wait for the exporter than max_held_bytes allows",
    "overload": "spans start faster than they can be judged, or a gate or a callback hangs",
    "shutdown": "the shutdown waited for them no longer",
    "refused": "the exporter refused them",
    "refused: 400": "the receiver calls the request invalid; is that an OTLP endpoint?",
    "refused: 401": "the receiver knows no such credentials; check OTEL_EXPORTER_OTLP_HEADERS",
    "refused: 403": "the receiver does not permit it with these credentials; check OTEL_EXPORTER_OTLP_HEADERS",
    "refused: 404": "there is nothing at that address; OTLP over HTTP ends in /v1/traces",
    "refused: 413": "a single span is larger than the receiver takes",
    "refused: UNAUTHENTICATED": "the receiver knows no such credentials; check OTEL_EXPORTER_OTLP_HEADERS",
    "refused: PERMISSION_DENIED": "the receiver does not permit it; check OTEL_EXPORTER_OTLP_HEADERS",
    "refused: UNIMPLEMENTED": "what listens there does not speak OTLP over gRPC; HTTP has another port",
    "defect": "they could not be judged or passed on, which is a defect of spangate",
    "after_shutdown": "they ended after the shutdown",
    "hook_error": "a hook failed on them, which is a defect of spangate",
}


class Telemetry:
    """Counts, by the OpenTelemetry metrics API (nothing happens without a MeterProvider) and for whoever asks.

    ``left_out`` counts the calls of tools that a ledger did not take;
    ``received`` counts the spans that programs have sent, ``refused`` their requests that were refused, by reason;
    ``lost`` counts the spans that reached neither the exporter nor a verdict, by reason; ``withheld`` those that a
    refused run keeps back; ``released`` those that the exporter accepted. Hooks of many threads count, and so do the
    gate's own.
    """

    def __init__(self, held: Callable[[], int]) -> None:
        self.reset()
        meter = get_meter("spangate", __version__)
        self._runs = meter.create_counter("spangate.runs", "{run}", "Runs judged, by verdict and trigger")
        self._findings = meter.create_counter("spangate.findings", "{finding}", "Findings, by code and level")
        self._withheld = meter.create_counter("spangate.spans.withheld", "{span}", "Spans of refused runs")
        self._released = meter.create_counter("spangate.spans.released", "{span}", "Spans that the exporter accepted")
        self._lost = meter.create_counter("spangate.spans.lost", "{span}", "Spans that went nowhere, by reason")
        self._received = meter.create_counter("spangate.spans.received", "{span}", "Spans that programs have sent")
        self._refused = meter.create_counter("spangate.receiver.refused", "{request}", "Requests refused, by reason")
        self._left_out = meter.create_counter("spangate.ledger.left_out", "{call}", "Calls that a ledger did not take")
        self._seconds = meter.create_histogram("spangate.judge.duration", "s", "Time to judge a run")
        meter.create_observable_up_down_counter("spangate.spans.held", [_observer(held)], "{span}", "Spans held now")

    def reset(self) -> None:
        """Count from nothing: what was lost before a fork, the parent tells."""
        self._lock = threading.RLock()  # a finalizer may end a span, and so count, while this thread holds it
        self.lost: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.withheld = self.received = self.left_out = 0
        self.released = 0

    def judged(self, verdict: Verdict, seconds: float) -> None:
        """Count a verdict."""
        self._runs.add(1, {"verdict": verdict.verdict, "trigger": verdict.trigger})
        self._seconds.record(seconds)
        for finding in verdict.findings:
            self._findings.add(1, {"code": finding.code, "level": finding.level or ""})

    def release(self, spans: int) -> None:
        """Count spans that the exporter has accepted."""
        with self._lock:
            self.released += spans
        self._released.add(spans)

    def withhold(self, spans: int) -> None:
        """Count ended spans that a verdict keeps back."""
        with self._lock:
            self.withheld += spans
        self._withheld.add(spans)

    def receive(self, spans: int) -> None:
        """Count spans that a program has sent."""
        with self._lock:
            self.received += spans
        self._received.add(spans)

    def leave_out(self, calls: int, why: str) -> None:
        """Count calls that a ledger did not take; with a log line the first time."""
        with self._lock:
            is_first = not self.left_out
            self.left_out += calls
        self._left_out.add(calls)
        if is_first and calls:
            logger.warning("the ledger does not take what tools were called with, which costs no run anything: %s", why)

    def refuse(self, reason: str, what: str) -> None:
        """Count a request that was refused; with a log line as for what is lost."""
        after, is_told = self._count(self.refused, reason, 1)
        self._refused.add(1, {"reason": reason})
        if is_told:
            logger.warning("the receiver has refused %d so far for this reason (%r): %s", after, reason, what)

    def lose(self, spans: int, reason: str) -> None:
        """Count spans that are gone; the first time for each reason, and then at each power of two, with a log line."""
        after, is_told = self._count(self.lost, reason, spans)
        self._lost.add(spans, {"reason": reason})
        if is_told:
            why = _LOSSES.get(reason, f"the exporter {reason}")
            logger.warning("%d %s lost so far: %s (reason %r)", after, "span" if after == 1 else "spans", why, reason)

    def _count(self, counter: Counter[str], reason: str, number: int) -> tuple[int, bool]:
        """Count, and return the sum with whether it has reached another power of two."""
        with self._lock:
            before = counter[reason]
            after = counter[reason] = before + number
        return after, before.bit_length() < after.bit_length()


def _observer(held: Callable[[], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _options: [Observation(held())]
