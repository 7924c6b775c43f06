"""The file of a ledger as one process uses it: one connection, one thread at a time, and none across a fork.

SQLite knows a file once for a whole process, its locks too; a child that is forked meanwhile would inherit what it
takes for locks of its own. So nothing is open while a process forks. What is at a path is looked at before each use: a
file that somebody has taken away, or replaced, would be written to for nobody.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from spangate._ledger.database import close, opened
from spangate._ledger.errors import LedgerError, LedgerLockedError, told

_FORK_S = 2.0
"""How long a fork waits for a thread that writes."""


class Store:
    """The file at ``path``. Whoever asks for the lock waits ``patience_s`` seconds for it."""

    def __init__(self, path: str, patience_s: float) -> None:
        self.path = path
        self.patience_s = patience_s
        self._known: list[sqlite3.Connection] = []
        self._file = (0, 0)
        self._is_held = False
        self._is_torn = False
        self._turn = threading.Lock()
        self._finalizer = weakref.finalize(self, close, self._known)
        _stores.append(weakref.ref(self, _stores.remove))

    @contextmanager
    def reading(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend the connection for reading, all at one moment. A file that may not be written is read all the same.

        Raises:
            LedgerError: it cannot be read.
        """
        with self._lent("BEGIN", self.patience_s if patience_s is None else patience_s) as connection:
            yield connection

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend the connection for writing: all of it happens, or nothing. Nobody else writes meanwhile.

        Raises:
            LedgerError: it cannot be written.
        """
        with self._lent("BEGIN IMMEDIATE", self.patience_s if patience_s is None else patience_s) as connection:
            yield connection

    def close(self) -> None:
        """Close the file. It is opened again by whoever wants it afterwards."""
        with self._turn:
            close(self._known)

    @contextmanager
    def _lent(self, begin: str, patience_s: float) -> Iterator[sqlite3.Connection]:
        with self._own_turn(patience_s):
            is_done = False
            try:
                connection = self._connection(patience_s, may_write=begin != "BEGIN")
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
                is_done = True
            except (sqlite3.Error, OSError) as error:
                raise told(error, self.path, patience_s) from error
            finally:
                if not is_done:
                    close(self._known)  # which undoes what was begun

    @contextmanager
    def _own_turn(self, patience_s: float) -> Iterator[None]:
        if self._is_torn:
            what = "this process was forked while a thread of its parent was writing, so its locks cannot be trusted"
            raise LedgerError(what, path=self.path, fix="start such processes by spawn, or fork before threads")
        if not self._turn.acquire(timeout=patience_s):
            what = f"another thread of this process has kept it busy for {patience_s:g} s"
            raise LedgerLockedError(what, path=self.path, fix="see what that one waits for, or raise busy_timeout_s")
        try:
            yield
        finally:
            self._turn.release()

    def _connection(self, patience_s: float, *, may_write: bool) -> sqlite3.Connection:
        if self._known and self._file != _file_at(self.path):
            close(self._known)
        if not self._known:
            found, is_kept = opened(self.path, patience_s, may_write=may_write)
            self._known.append(found)
            self._file = _file_at(self.path) if is_kept else (0, 0)
        self._known[0].execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
        return self._known[0]

    def before_fork(self) -> None:
        """Close the file. What a thread is at is waited for, but not for long."""
        self._is_held = self._turn.acquire(timeout=_FORK_S)
        if self._is_held:
            close(self._known)

    def after_fork(self, *, in_child: bool) -> None:
        """Go on. A child that has inherited an open file keeps it, unused: to close it could undo its parent's work."""
        if self._is_held:
            self._is_held = False
            self._turn.release()
        elif in_child:
            self._is_torn = True
            _inherited.extend(self._known)
            self._known.clear()


_stores: list[weakref.ref[Store]] = []
_inherited: list[sqlite3.Connection] = []


def _alive() -> list[Store]:
    return [store for reference in [*_stores] if (store := reference()) is not None]


def _before_fork() -> None:
    for store in _alive():
        store.before_fork()


def _after_fork(*, in_child: bool) -> None:
    for store in _alive():
        store.after_fork(in_child=in_child)


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )


def _file_at(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116  this is asked before each use
    except OSError:
        return (-1, -1)
    return found.st_dev, found.st_ino
