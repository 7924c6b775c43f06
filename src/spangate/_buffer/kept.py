"""Log records as they are held: what they name, and who takes them when that is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from spangate._records import LogRecord

Fate: TypeAlias = Literal["held", "pass", "withheld", "full"]
"""What becomes of a log record: ``full`` means that no more may be held."""


class Taker(Protocol):
    """Whoever lets log records leave. Nothing here raises or blocks."""

    def record_of(self, kept: Kept) -> LogRecord:
        """Read a record: who does not hold any need not know how."""

    def release(self, kept: Kept) -> None:
        """Have a record leave."""

    def withhold(self, records: int) -> None:
        """Count records that a verdict keeps back."""

    def lose(self, records: int, reason: str) -> None:
        """Count records that are gone."""


@dataclass(eq=False, slots=True)
class Kept:
    """A log record of the SDK, ``source``, with the ids of the span that it names, 0 if it names none.

    ``weight`` is in bytes, ``number`` tells in which order records were emitted. ``joined`` says that the span was here
    and live when the record was emitted, ``span_ended`` that it was here and had ended.
    """

    trace_id: int
    span_id: int
    source: Any
    weight: int
    taker: Taker
    number: int = 0
    joined: bool = False
    span_ended: bool = False
