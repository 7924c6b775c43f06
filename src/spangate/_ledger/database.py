"""The database in the file of a ledger: made, opened, and refused where it is something else.

It is SQLite with a write-ahead log: many may read while one writes, a process that is killed loses nothing but what it
had not committed, and others wait their turn. Network file systems do not offer what that takes.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from spangate._ledger.errors import LedgerCorruptError, LedgerVersionError, is_busy, is_closed_to_us

VERSION: Final = 1
APPLICATION: Final = 0x5350_474C
"""What SQLite's header says whose file it is."""

_SCHEMA: Final = (
    """CREATE TABLE calls (
        id INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT, tool TEXT NOT NULL, version TEXT NOT NULL,
        tree_before TEXT, tree_after TEXT, outcome TEXT, exit_code INTEGER, diff_stat TEXT,
        session TEXT NOT NULL, repository TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL,
        sighting TEXT NOT NULL, origin TEXT NOT NULL, started_ns INTEGER NOT NULL, ended_ns INTEGER)""",
    "CREATE INDEX calls_by_fingerprint ON calls (fingerprint, repository)",
    "CREATE INDEX calls_awaited ON calls (trace_id) WHERE sighting = 'awaited'",
    "CREATE UNIQUE INDEX calls_by_span ON calls (trace_id, span_id) WHERE origin = 'span'",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_QUESTIONS: Final = ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
_STEP_S: Final = 0.01


def opened(path: str, patience_s: float, *, may_write: bool) -> tuple[sqlite3.Connection, bool]:
    """Open the ledger at ``path``, made if it is not there. Also says whether the connection can be kept for later.

    Raises:
        LedgerError: it is something else, or of a newer format.
        OSError: it cannot be made.
        sqlite3.Error: it cannot be read.
    """
    _make(path)
    try:
        return _connected(path, "mode=rw", patience_s), True
    except sqlite3.OperationalError as error:
        if may_write or not is_closed_to_us(error):
            raise
    return _connected(path, _mode_to_read(path), patience_s), False


def close(known: list[sqlite3.Connection]) -> None:
    """Close what is in the list, which is empty then."""
    while known:
        known.pop().close()


def _connected(path: str, mode: str, patience_s: float) -> sqlite3.Connection:
    name = f"file:{quote(os.path.abspath(path))}?{mode}"  # noqa: PTH100  SQLite itself follows links
    # threads hand the connection on to each other, and never use it at the same time
    connection = sqlite3.connect(name, timeout=patience_s, isolation_level=None, check_same_thread=False, uri=True)
    try:
        if _is_new(connection, path) and mode == "mode=rw":
            _set_up(connection, path, time.monotonic() + patience_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _mode_to_read(path: str) -> str:
    """Say how to open a file that may not be written. Where all of it is in the file, SQLite need write nothing."""
    waiting = Path(f"{path}-wal")
    is_settled = not waiting.exists() or waiting.stat().st_size == 0
    return "immutable=1" if is_settled else "mode=ro"


def _make(path: str) -> None:
    """Make the file, and its directory, for nobody but this user. SQLite gives what it puts beside it the same mode.

    It gets its name when it is there: to open it by that name and close it again would take back the locks of whoever
    in this process has opened it meanwhile.
    """
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if place.exists():
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    os.close(handle)
    try:
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        os.unlink(made)  # noqa: PTH108  as it was made


def _is_new(connection: sqlite3.Connection, path: str) -> bool:
    """Say whether there is no ledger in the file yet. Raises if there is something else, or one of a newer format."""
    version, application, tables = _at_one_moment(connection)
    if application == version == tables == 0:
        return True
    if application != APPLICATION:
        what = "is a database of another program"
        raise LedgerCorruptError(what, path=path, fix="name a file of its own for the ledger")
    if version > VERSION:
        what = f"was written by a newer spangate (its format is {version}, this one knows {VERSION})"
        raise LedgerVersionError(what, path=path, fix="upgrade spangate, or name another file")
    return False


def _at_one_moment(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return format, owner, and how many things are in the file: another process may be about to make them all."""
    begins = not connection.in_transaction
    if begins:
        connection.execute("BEGIN")
    try:
        version, application, tables = (connection.execute(question).fetchone()[0] for question in _QUESTIONS)
    finally:
        if begins:
            connection.execute("ROLLBACK")
    return version, application, tables


def _set_up(connection: sqlite3.Connection, path: str, deadline: float) -> None:
    """Make the tables, unless somebody else has done so meanwhile."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # SQLite does not wait for the lock that this takes
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_STEP_S)
    connection.execute("BEGIN IMMEDIATE")
    if _is_new(connection, path):
        for statement in _SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")
