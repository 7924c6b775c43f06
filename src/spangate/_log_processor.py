"""The log processor: one line on a logger provider, which holds log records with the runs that they belong to."""

from __future__ import annotations

import threading
import time

from spangate._buffer.kept import Kept
from spangate._buffer.tree import SPAN_OVERHEAD
from spangate._log_telemetry import LogTelemetry
from spangate._processor import SHUTDOWN_S, GateSpanProcessor
from spangate._release.flush import Flush
from spangate._release.outlet import Outlet
from spangate._sdk.forks import after_fork
from spangate._sdk.log_records import (
    LogRecordExporter,
    LogRecordProcessor,
    LogWay,
    ReadWriteLogRecord,
    ids_of,
    is_exporting,
    readable,
    record_bytes,
    run_id_of,
)
from spangate._telemetry import logger


class GateLogRecordProcessor(LogRecordProcessor):
    """Holds the log records of each agent run with its spans, and exports or withholds them with it.

    It takes the place of a BatchLogRecordProcessor: one line on an existing logger provider. A record belongs to the
    run whose span it was emitted in. All others pass at once; those of a trace in which no agent has been seen yet
    pass when its spans do. What comes after a decision follows it.

    Args:
        exporter: Takes the records that leave.
        gate: The gate of the same program, on its tracer provider. Its ``max_held_bytes`` bounds records as well.

    Raises:
        TypeError: what is given as an exporter or as a gate is none.
        SpangateError: the installed SDK keeps its log records where no version that is known does.
    """

    def __init__(self, exporter: LogRecordExporter, gate: GateSpanProcessor) -> None:
        if isinstance(exporter, type) or not callable(getattr(exporter, "export", None)):
            raise TypeError(f"exporter={exporter!r}: give an exporter of log records, as OTLPLogExporter()")
        if not isinstance(gate, GateSpanProcessor):
            raise TypeError(f"gate={gate!r}: give the GateSpanProcessor that is on the tracer provider")
        self._desk = gate._logs  # noqa: SLF001  its other half
        self._telemetry = LogTelemetry()
        self._outlet = Outlet(LogWay(exporter), self._desk.max_bytes, self._telemetry)
        self._is_closed = False
        self._has_failed = False
        self._desk.at_end(self._gate_is_closed)
        after_fork(self._after_fork)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Hold the record with its run, or let it pass."""
        try:
            self._take(log_record)
        except Exception:  # noqa: BLE001  an exception would reach whoever logs
            self._telemetry.lose(1, "hook_error")
            self._fault("on_emit")

    def _take(self, emitted: ReadWriteLogRecord) -> None:
        if self._is_closed or is_exporting():
            self._telemetry.lose(1, "after_shutdown" if self._is_closed else "exporting")
            return
        trace_id, span_id = ids_of(emitted)
        weight = SPAN_OVERHEAD + record_bytes(emitted)
        kept = Kept(trace_id, span_id, readable(emitted), weight, self._outlet)
        fate = self._desk.keep(kept, None if trace_id else run_id_of(emitted))
        if fate == "held" and kept.joined:
            self._telemetry.join()
        elif fate == "pass":
            self._outlet.release(kept)
        elif fate == "withheld":
            self._telemetry.withhold(1)
        elif fate == "full":
            self._telemetry.lose(1, "overload")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Judge every run whose root has ended, and export what is released; records of open runs stay held.

        Returns:
            True if everything was accepted by the exporter in time, and no run had to stay held for its grace. False
            at once where the gate itself or the exporter is the caller.
        """
        try:
            if self._is_closed:
                return True
            deadline = time.monotonic() + timeout_millis / 1000
            is_settled = self._desk.settle(deadline)
            return self._outlet.flush(Flush(deadline)) and is_settled
        except Exception:  # noqa: BLE001  it would reach the caller of the provider's force_flush
            self._fault("force_flush")
            return False

    def shutdown(self) -> None:
        """Export what is decided, and shut the exporter down. Bounded; a second call does nothing.

        Records of runs that are still open stay with them: the gate's own shutdown decides about them, and shuts the
        exporter down then.
        """
        try:
            if self._is_closed:
                return
            self._is_closed = True
            if self._outlet.is_inside:
                threading.Thread(target=self._shut_down, name="spangate-aside", daemon=True).start()
            else:
                self._shut_down()
        except Exception:  # noqa: BLE001  the program is ending; it must end
            self._fault("shutdown")

    def _shut_down(self) -> None:
        deadline = time.monotonic() + SHUTDOWN_S
        self._desk.settle(deadline)
        if self._desk.holds_records and not self._desk.is_closed:
            self._outlet.flush(Flush(deadline))
        else:
            self._outlet.close(deadline)
            self._desk.never_mind(self._gate_is_closed)

    def _gate_is_closed(self) -> None:
        if self._is_closed:
            self._outlet.close(time.monotonic() + SHUTDOWN_S)

    @property
    def joined(self) -> int:
        """Log records that were emitted while the span of a held trace that they name was live."""
        return self._telemetry.joined

    @property
    def withheld(self) -> int:
        """Log records of refused runs, kept back."""
        return self._telemetry.withheld

    @property
    def losses(self) -> dict[str, int]:
        """Log records that neither reached the exporter nor were withheld by a verdict, by reason."""
        return dict(self._telemetry.lost)

    def _after_fork(self) -> None:
        self._telemetry.reset()
        self._outlet.reset()

    def _fault(self, where: str) -> None:
        if not self._has_failed:  # a fault that every record meets must not fill the log
            self._has_failed = True
            logger.exception("%s failed; the program goes on, log records may be missing", where)
