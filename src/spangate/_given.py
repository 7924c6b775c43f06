"""What a gate is given, checked and made ready: exporters, the form of what leaves, a receiver, a ledger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._buffer import Buffer
from spangate._hosts import open_way
from spangate._membership import Membership
from spangate._receiver import Receiver
from spangate._release.compact import Compactor
from spangate._release.packing import Pack, whole
from spangate._sdk.exporter import otlp_exporter
from spangate._sdk.upstream import Upstream
from spangate._side_store import SideStore
from spangate._telemetry import Telemetry, logger

if TYPE_CHECKING:
    from spangate._ledger.feeder import Feeder
    from spangate._receiver.door import Door
    from spangate.ledger import RetryLedger


def packing_of(compact: bool | SideStore) -> Pack:  # noqa: FBT001  it says which form, as its caller's caller does
    """Return what becomes of the spans that leave. Raises ``TypeError`` where ``compact`` is none of what it may be."""
    if isinstance(compact, SideStore):
        return Compactor(compact.put)
    if not isinstance(compact, bool):
        raise TypeError(f"compact={compact!r}: this may be True, False, or a SideStore")
    return Compactor() if compact else whole


def opened(receiver: Receiver, buffer: Buffer, telemetry: Telemetry) -> Door:
    """Open a receiver, and have programs told of it."""
    from spangate._receiver.door import Door  # it takes a server along, which nobody else has a use for

    door = Door(receiver, buffer, telemetry)
    open_way(door)
    return door


def feeder_of(ledger: RetryLedger | str | os.PathLike[str], telemetry: Telemetry) -> Feeder:
    """Return what writes the calls of tools into a ledger."""
    from spangate._ledger.feeder import Feeder  # it takes SQLite along, as does the ledger
    from spangate.ledger import RetryLedger

    opened = ledger if isinstance(ledger, RetryLedger) else RetryLedger(ledger)
    return Feeder(opened.book, telemetry)


def exporters_of(
    given: SpanExporter | Sequence[SpanExporter] | None, member: Membership | None
) -> Sequence[SpanExporter]:
    """Return what takes what leaves: of a process that is a part of a run, the gate that holds the run, and only that.

    What was given is checked all the same: whether it is right must not depend on who starts the program.
    """
    exporters = () if given is None else _several(given)
    if member is None:
        return exporters or (otlp_exporter(),)
    logger.info("this process is a part of run %s: what it records is handed on, and judged there", member.run_id)
    return (Upstream(member.address, lambda _trace_id: member.headers),)


def _several(exporter: SpanExporter | Sequence[SpanExporter]) -> Sequence[SpanExporter]:
    exporters = tuple(exporter) if isinstance(exporter, Sequence) else (exporter,)
    if not exporters:
        raise ValueError("exporter=(): this may be an exporter, several of them, or None for OTLP")
    for one in exporters:
        if isinstance(one, type) or not callable(getattr(one, "export", None)):
            raise TypeError(f"exporter={exporter!r}: give exporters, as OTLPSpanExporter(), or None for OTLP")
    return exporters
