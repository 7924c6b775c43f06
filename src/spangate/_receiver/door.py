"""Where programs of a gate's runs come in: what they are told, and where what they send is put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spangate._buffer import Buffer
from spangate._buffer.received import Received, Reception
from spangate._receiver import Receiver
from spangate._receiver.server import Server
from spangate._receiver.tokens import Bearer
from spangate._records import Finding
from spangate._sdk.upstream import Upstream
from spangate._telemetry import Telemetry

_LOSSES: Final = frozenset({"too_large", "malformed", "slow", "busy", "defect", "unknown_form"})
"""Refusals by which a program of a run may have lost spans; the rest asked for something that is not here."""


class Door:
    """The receiver of a gate: a way for the programs below the roots of its trees.

    A program that is itself the root of a tree is part of no run, and may live for long: its spans are not held.
    """

    def __init__(self, settings: Receiver, buffer: Buffer, telemetry: Telemetry) -> None:
        self._buffer = buffer
        self._telemetry = telemetry
        self._server = Server(settings, self)
        self.stop = self._server.stop

    def after_fork(self) -> Upstream | None:
        """Listen no longer, and return what leads to the process that does. None if it had stopped."""
        is_open = self._server.forget()
        return Upstream(self._server.address, self._server.headers) if is_open else None

    def variables(self, trace_id: int, span_id: int, *, is_program: bool) -> Mapping[str, str]:
        """Return what tells a program where its spans are wanted; nothing where they are not."""
        is_held = self._buffer.is_below_root if is_program else self._buffer.holds
        return self._server.variables(trace_id, span_id) if is_held(trace_id, span_id) else {}

    def take(self, bearer: Bearer, received: Received) -> Reception:
        """Hold spans that a program has sent."""
        outcome = self._buffer.receive(bearer.trace_id, received)
        if outcome == "taken":
            self._telemetry.receive(received.count)
        return outcome

    def refuse(self, reason: str, bearer: Bearer | None, what: str) -> None:
        """Count a request that was refused, and tell the run of the program that may have lost spans by it."""
        self._telemetry.refuse(reason, what)
        if bearer is not None and reason in _LOSSES:
            note = Finding("receiver.refused", None, f"the receiver refused what this program sent: {what}")
            self._buffer.take_note(bearer.trace_id, bearer.span_id, note)
