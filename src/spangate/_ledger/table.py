"""What is written to a ledger and asked of it: the statements, over a connection that somebody lends."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spangate._ledger.rows import COLUMNS, Attempt, Veto, attempt_of, ruling

_ALL: Final = ", ".join(COLUMNS)
_WRITTEN: Final = COLUMNS[1:]
_INSERT: Final = f"INTO calls ({', '.join(_WRITTEN)}) VALUES ({', '.join('?' * len(_WRITTEN))})"
_TELLS: Final = "(outcome IN ('error', 'timeout') OR outcome = 'ok' AND sighting <> 'missing')"
_LATEST_FIRST: Final = "ORDER BY coalesce(ended_ns, started_ns) DESC, id DESC"
_NUMBERS: Final = 1 << 63
_MAX_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class Scope:
    """Which calls are meant: those for which everything holds that is not None.

    ``since_ns`` and ``until_ns`` are nanoseconds since the epoch: calls that ended, or if they have not, began between
    the two.
    """

    fingerprint: str | None = None
    session: str | None = None
    repository: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None

    def clause(self) -> tuple[str, list[Any]]:
        """Return what stands behind ``WHERE``, and the values in it."""
        conditions = (
            ("fingerprint = ?", self.fingerprint),
            ("session = ?", self.session),
            ("repository = ?", self.repository),
            ("coalesce(ended_ns, started_ns) >= ?", self.since_ns),
            ("coalesce(ended_ns, started_ns) <= ?", self.until_ns),
        )
        wanted = [(condition, value) for condition, value in conditions if value is not None]
        return " AND ".join(condition for condition, _ in wanted) or "1", [_storable(value) for _, value in wanted]


def judged(connection: sqlite3.Connection, scope: Scope, tree_hash: str | None) -> Veto:
    """Decide about a call that is to be made on a tree."""
    where, values = scope.clause()
    decisive = _one(connection, f"{where} AND {_TELLS} AND tree_before IS ?", [*values, tree_hash])
    latest = decisive or _one(connection, f"{where} AND {_TELLS}", values) or _one(connection, where, values)
    return ruling(scope.fingerprint or "", decisive, latest)


def _one(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> Attempt | None:
    query = f"SELECT {_ALL} FROM calls WHERE {where} {_LATEST_FIRST} LIMIT 1"  # noqa: S608  of our own words
    row = connection.execute(query, values).fetchone()
    return None if row is None else attempt_of(row)


def insert(connection: sqlite3.Connection, attempt: Attempt) -> int:
    """Write a new row, and return its number. The one that ``attempt`` has does not count."""
    return connection.execute(f"INSERT {_INSERT}", _values(attempt)).lastrowid or 0


def insert_new(connection: sqlite3.Connection, attempts: Iterable[Attempt]) -> None:
    """Write rows for spans, but for those of which there is one."""
    connection.executemany(f"INSERT OR IGNORE {_INSERT}", [_values(attempt) for attempt in attempts])


def finish(connection: sqlite3.Connection, attempt: Attempt) -> None:
    """Write the end of a call. If its row is gone, with the file perhaps, it is written anew."""
    query = (
        "UPDATE calls SET tree_after = ?, outcome = ?, exit_code = ?, diff_stat = coalesce(?, diff_stat), ended_ns = ?"
        " WHERE id = ? AND started_ns = ? AND fingerprint = ?"
    )
    values = _values(attempt)
    known = dict(zip(_WRITTEN, values, strict=True))
    told = [known[name] for name in ("tree_after", "outcome", "exit_code", "diff_stat", "ended_ns")]
    if not connection.execute(query, [*told, attempt.id, known["started_ns"], known["fingerprint"]]).rowcount:
        insert(connection, attempt)


def awaited(connection: sqlite3.Connection, trace_id: str) -> list[Attempt]:
    """Return the calls in a trace of whose span nobody knows yet what became of it."""
    query = f"SELECT {_ALL} FROM calls WHERE sighting = 'awaited' AND trace_id = ?"  # noqa: S608  of our own words
    return [attempt_of(row) for row in connection.execute(query, [trace_id])]


def sight(connection: sqlite3.Connection, attempts: Iterable[Attempt]) -> None:
    """Write what became of the spans of calls, which spans these are, and what they say of changed files."""
    query = "UPDATE calls SET sighting = ?, trace_id = ?, span_id = ?, diff_stat = coalesce(diff_stat, ?) WHERE id = ?"
    told = [(one.sighting, one.trace_id, one.span_id, one.diff_stat, one.id) for one in attempts]
    connection.executemany(query, told)


def listed(connection: sqlite3.Connection, scope: Scope) -> Iterator[Attempt]:
    """Yield the calls in ``scope``, as they began."""
    where, values = scope.clause()
    query = f"SELECT {_ALL} FROM calls WHERE {where} ORDER BY started_ns, id"  # noqa: S608  of our own words
    for row in connection.execute(query, values):
        yield attempt_of(row)


def forget(connection: sqlite3.Connection, scope: Scope) -> int:
    """Delete the calls in ``scope``, and return how many they were."""
    where, values = scope.clause()
    return connection.execute(f"DELETE FROM calls WHERE {where}", values).rowcount  # noqa: S608  of our own words


def _values(attempt: Attempt) -> list[Any]:
    short = replace(attempt, tool=attempt.tool[:_MAX_NAME], version=attempt.version[:_MAX_NAME])
    return [_storable(getattr(short, name)) for name in _WRITTEN]


def _storable(value: Any) -> Any:
    """Return a value as SQLite takes it: spans of others may hold half characters, and numbers out of range."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int):
        return max(min(value, _NUMBERS - 1), -_NUMBERS)
    return value
