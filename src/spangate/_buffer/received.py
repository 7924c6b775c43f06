"""Spans that programs of a run have sent, as they came, until somebody reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple


class Reception(NamedTuple):
    """What became of a request, and how many of its spans are held now, or will follow a decision.

    ``full`` means that there is no room for it now, ``over`` that nobody remembers the run that it belongs to.
    """

    outcome: Literal["taken", "full", "over"]
    spans: int


@dataclass(frozen=True, eq=False, slots=True)
class Received:
    """The ``count`` spans of one trace in a request, as OTLP protobuf that was checked.

    They are not parsed before they are wanted: so they take up a fifth of the room, and receiving takes no time.
    ``sender_id`` is the id of the span of the program that sent them, 0 where nobody knows it.
    """

    message: bytes
    count: int
    trace_id: int
    sender_id: int
