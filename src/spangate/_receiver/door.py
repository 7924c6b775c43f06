"""Where programs of a gate's runs come in: what they are told, and where what they send is put."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spangate._buffer import Buffer
from spangate._buffer.received import Received, Reception
from spangate._receiver import Receiver
from spangate._receiver.server import Server
from spangate._receiver.tokens import Bearer
from spangate._records import Finding
from spangate._sdk.upstream import Upstream
from spangate._telemetry import Telemetry, logger

_LOSSES: Final = frozenset({"too_large", "malformed", "slow", "busy", "defect", "unknown_form"})
"""Refusals by which a program of a run may have lost spans; the rest asked for something that is not here."""


class Door:
    """The receiver of a gate: a way for the programs below the roots of its trees.

    A program that is itself the root of a tree is part of no run, and may live for long: its spans are not held. In a
    forked child, programs of runs that the parent holds are told of the parent's receiver; for runs of its own it opens
    one when it first starts a program in them.
    """

    def __init__(self, settings: Receiver, buffer: Buffer, telemetry: Telemetry) -> None:
        self._settings = settings
        self._buffer = buffer
        self._telemetry = telemetry
        self._parent: Server | None = None
        self._may_open = True
        self._opening = threading.Lock()
        self._server: Server | None = Server(settings, self)

    def after_fork(self, parent_of: Callable[[int], int]) -> Upstream | None:
        """Listen no longer, and return what leads to the process that does, None if it does not.

        ``parent_of`` gives for the id of a trace the span there that the parent process holds.
        """
        self._opening = threading.Lock()
        parent, self._server = self._server, None
        if parent is None:
            return None
        parent.forget()
        self._parent = parent
        return Upstream(parent.address, lambda trace_id: parent.headers(trace_id, parent_of(trace_id)))

    def stop(self) -> None:
        """Listen no longer."""
        with self._opening:
            server, self._server, self._may_open = self._server, None, False
        if server is not None:
            server.stop()

    def variables(self, trace_id: int, span_id: int, *, is_program: bool) -> Mapping[str, str]:
        """Return what tells a program where its spans are wanted; nothing where they are not."""
        if self._parent is not None and self._buffer.is_member(trace_id, span_id):
            return self._parent.variables(trace_id, span_id)
        is_held = self._buffer.is_below_root if is_program else self._buffer.holds
        server = self._open() if is_held(trace_id, span_id) else None
        return {} if server is None else server.variables(trace_id, span_id)

    def _open(self) -> Server | None:
        with self._opening:
            if self._server is None and self._may_open:
                try:
                    self._server = Server(self._settings, self)
                except (OSError, RuntimeError):  # no port, or no thread, is left
                    self._may_open = False
                    logger.exception("no receiver could be opened in this forked process; its programs are not gated")
            return self._server

    def take(self, bearer: Bearer, parts: Sequence[Received]) -> Reception:
        """Hold spans that a program has sent."""
        reception = self._buffer.receive(bearer.trace_id, parts)
        self._telemetry.receive(reception.spans)
        return reception

    def refuse(self, reason: str, bearer: Bearer | None, what: str) -> None:
        """Count a request that was refused, and tell the run of the program that may have lost spans by it."""
        self._telemetry.refuse(reason, what)
        if bearer is not None and reason in _LOSSES:
            note = Finding("receiver.refused", None, f"the receiver refused what this program sent: {what}")
            self._buffer.take_note(bearer.trace_id, bearer.span_id, note)
