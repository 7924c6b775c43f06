"""Log records and the runs that they belong to: read with them, and handed over when they are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from spangate._buffer.kept import Kept
from spangate._buffer.tree import Decided, Ruling
from spangate._log_evidence import give_messages, notes_on
from spangate._paced import resting
from spangate._run import Run


def with_records(run: Run, decisions: Iterable[Decided], rest: Callable[[], None]) -> Run:
    """Return a run with the log records that share its fate, and what is to be said of them."""
    kept = [one for decided in decisions for one in (*decided.records,)]  # more may come meanwhile
    if not kept:
        return run
    known = {_identity(one.source.log_record): one for one in kept}
    records = [one.taker.record_of(one) for one in resting(known.values(), rest)]
    give_messages(run, records)
    return replace(run, records=records, notes=[*run.notes, *notes_on(run, records)])


def _identity(record: Any) -> tuple[int, int, int]:
    """Return what copies of a record share that two processors were given, and no two records do."""
    return id(record.attributes), id(record.body), record.observed_timestamp


def hand_over(records: Sequence[Kept], ruling: Ruling, rest: Callable[[], None]) -> None:
    """Have log records share what was decided, with rests."""
    if ruling == "fail":
        for kept in records:
            kept.taker.withhold(1)
    else:
        for kept in resting(records, rest):
            kept.taker.release(kept)


def lose(records: Iterable[Kept], reason: str) -> None:
    """Count log records whose run nobody will decide."""
    for kept in records:
        kept.taker.lose(1, reason)
