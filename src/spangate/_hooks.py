"""The hooks: what the SDK calls when a span starts and ends. Whatever happens here, the host program does not notice.

These take the lock each time. Nearly every span goes the quick way past it, in :mod:`spangate._quick_hooks`.
"""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from spangate._asking import block_here
from spangate._buffer import Buffer
from spangate._sdk.fields import started
from spangate._sdk.outlook import Outlook
from spangate._settle.place import Placer
from spangate._settle.worker import Worker
from spangate._stamp import stamp, stamp_asked
from spangate._telemetry import Telemetry, logger


class Hooks(SpanProcessor):
    """Puts spans into trees as they start, and in their places as they end."""

    def __init__(self, buffer: Buffer, placer: Placer, worker: Worker, telemetry: Telemetry) -> None:
        self._buffer = buffer
        self._placer = placer
        self._worker = worker
        self._telemetry = telemetry
        self._outlook = Outlook(self)
        self._is_closed = False
        self._faults: set[str] = set()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Hold the span with its tree, and stamp it."""
        try:
            self._start(span, parent_context)
        except Exception:  # noqa: BLE001  an exception would keep the user's code from running
            self._fault("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        """Put the ended span in the place of the live one."""
        try:
            self._end(span)
        except Exception:  # noqa: BLE001  an exception would replace the user's own
            self._fault("on_end")

    def _start(self, span: Span, parent_context: Context | None) -> None:
        if self._is_closed:
            return
        context, parent, attributes = started(span)
        tree = None
        if parent is not None and not parent[2]:  # the properties of a span context take thrice as long
            tree = self._buffer.join(context[0], context[1], parent[1], span)
        if tree is None:
            self._ready(span)
            tree = self._placer.place(span, context, parent, parent_context)
        if tree is None:
            return
        block = block_here()
        if block is None:
            stamp(span, context[1], tree, attributes)
        else:
            self._buffer.watch_starts(context[0], context[1])  # its children may be what the block is about
            stamp_asked(span, context[1], tree, attributes, block)

    def _end(self, span: ReadableSpan) -> None:
        context = span.context
        if not self._buffer.end(context[0], context[1], span):
            self._end_unheld(span)

    def _end_unheld(self, span: ReadableSpan) -> None:
        """Deal with the end of a span that no tree holds: late, inherited from a parent process, or never seen."""
        trace_id, span_id = span.context.trace_id, span.context.span_id
        if self._buffer.is_inherited(trace_id, span_id):
            return
        if self._is_closed:
            self._end_after_shutdown(span)
            return
        late = self._buffer.late_end(trace_id, span_id, span)
        if late is None and self._buffer.decided(trace_id, span_id, None) is not None:
            return  # it had ended before: the gate is there twice
        if late is None or late.is_cut:
            self._ready(span)
            if not self._placer.admit(span, late):
                self._telemetry.lose(1, "overload")

    def _end_after_shutdown(self, span: ReadableSpan) -> None:
        decided = self._buffer.decided_open(span.context.trace_id, span.context.span_id)
        if decided is not None and decided.ruling == "fail":
            self._telemetry.withhold(1)
        elif span.context.trace_flags.sampled:
            self._telemetry.lose(1, "after_shutdown")

    def _ready(self, span: ReadableSpan) -> None:
        """Start the threads with the first tree, and look once at each set of processors for ways round the gate."""
        if self._worker.wants_start:
            self._worker.start()
        self._outlook.look(span)

    def _fault(self, where: str) -> None:
        if where in ("on_start", "on_end"):
            self._telemetry.lose(1, "hook_error")
        if where not in self._faults:  # a fault that every span meets must not fill the log
            self._faults.add(where)
            logger.exception("%s failed; the program goes on, one span may be missing", where)
