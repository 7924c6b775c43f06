"""Spans that programs of a run have sent, as they came, until somebody reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Reception: TypeAlias = Literal["taken", "full", "over"]
"""What became of what was received: it is held or will follow a decision; there is no room; or its run is long over."""


@dataclass(frozen=True, eq=False, slots=True)
class Received:
    """The ``count`` spans of one trace in a request, as OTLP protobuf that was checked.

    They are not parsed before they are wanted: so they take up a fifth of the room, and receiving takes no time.
    ``sender_id`` is the id of the span of the program that sent them.
    """

    message: bytes
    count: int
    trace_id: int
    sender_id: int
