"""A ledger of calls that tools were given, and the veto against making the same one again.

The same tool, version and arguments, after a failure or after a success that changed nothing, on the same working tree,
is the same evidence twice::

    ledger = RetryLedger("~/.cache/agent/calls.db", repo=".")

    with ledger.guard("pytest", "tests/unit -x") as call:  # RetryBlocked, if that has failed on this very tree
        call.exit(subprocess.run(["pytest", "tests/unit", "-x"]).returncode)

An edit in between is new evidence. Arguments are hashed, with secrets hidden first, and stored nowhere. Several threads
and processes may use one file. A call that still runs blocks nobody: what is begun at the same time is no retry, and
whichever ends first blocks all that begin after it, if it failed or changed nothing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from spangate._attempts import Call, call_of
from spangate._ledger import table
from spangate._ledger.book import Asked, Book, Terms
from spangate._ledger.errors import (
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerReadOnlyError,
    LedgerVersionError,
    RetryBlocked,
)
from spangate._ledger.guard import Guard
from spangate._ledger.rows import Attempt, Veto
from spangate._ledger.table import Scope
from spangate._redaction import SECRET_KEYS, Redaction

__all__ = [
    "Attempt",
    "Guard",
    "LedgerCorruptError",
    "LedgerError",
    "LedgerLockedError",
    "LedgerReadOnlyError",
    "LedgerVersionError",
    "RetryBlocked",
    "RetryLedger",
    "Veto",
]

_SECOND: Final = 1_000_000_000


class RetryLedger:
    """The ledger in the file at ``path``, which is made with mode 0600 when it is first used.

    Args:
        path: The file. Not on a network file system, and not where it would change the working tree itself.
        repo: A directory in the git repository that the calls work on. The hash of its working tree is then a part of
            the evidence, and calls of which nobody knows the tree do not count. None: no repository is known.
        session: Calls are written down with it, and only calls with it count. None: those of all sessions count.
        max_age_s: Calls that ended more seconds ago do not count. None: all count.
        exempt: Names of tools that are never blocked, ``*`` standing for any text: polls, probes, whatever is repeated
            on purpose or answers otherwise each time.
        redact: Names of keys whose values are secret. Calls that differ only there are the same call.
        busy_timeout_s: Seconds to wait for somebody else who holds the lock.
        clock: Gives the time in nanoseconds since the epoch.

    Raises:
        ValueError: a time that is negative or not finite.
    """

    def __init__(  # noqa: PLR0913  the settings of a ledger are here, once
        self,
        path: str | os.PathLike[str],
        *,
        repo: str | os.PathLike[str] | None = None,
        session: str | None = None,
        max_age_s: float | None = None,
        exempt: Iterable[str] = (),
        redact: Iterable[str] = SECRET_KEYS,
        busy_timeout_s: float = 10.0,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        for name, value in (("max_age_s", max_age_s), ("busy_timeout_s", busy_timeout_s)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}: write seconds, 0 or more")
        self.path = str(Path(path).expanduser().absolute())
        terms = Terms(
            repository="" if repo is None else os.path.realpath(repo),
            session=session,
            max_age_s=max_age_s,
            exempt=tuple(exempt),
            redaction=Redaction(redact),
            clock=clock,
        )
        self.book = Book(self.path, busy_timeout_s, terms)

    def veto(
        self,
        tool: str,
        arguments: Any = "",
        version: str = "",
        tree_hash: str | None = None,
        *,
        session: str | None = None,
        max_age_s: float | None = None,
    ) -> Veto:
        """Say whether a call would be the same evidence twice. Nothing is written.

        Args:
            tool: The name of the tool.
            arguments: A text (a command line, or JSON), a list of words, or what JSON can hold.
            version: The version of the tool.
            tree_hash: What the call works on, if that is no git repository. None: the hash of the repository's working
                tree, if one is known.
            session: In place of the ledger's own.
            max_age_s: In place of the ledger's own, seconds.

        Raises:
            LedgerError: the ledger cannot be read.
            SpangateError: the working tree cannot be read.
            TypeError: arguments that are neither text nor JSON.
            ValueError: arguments that hold NaN or infinity.
        """
        call = call_of(tool, version, arguments, self.book.terms.redaction)
        return self.book.ask(Asked(call, session, max_age_s, tree_hash))

    def guard(
        self,
        tool: str,
        arguments: Any = "",
        version: str = "",
        tree_hash: str | None = None,
        *,
        session: str | None = None,
        max_age_s: float | None = None,
    ) -> Guard:
        """Return the context in which a call is made, sync or async. Arguments as of :meth:`veto`.

        Raises:
            TypeError: arguments that are neither text nor JSON.
            ValueError: arguments that hold NaN or infinity.
        """
        call = call_of(tool, version, arguments, self.book.terms.redaction)
        return Guard(self.book, Asked(call, session, max_age_s, tree_hash))

    def why(self, fingerprint: str, tree_hash: str | None = None) -> Veto:
        """Decide about a call of which only the fingerprint is known, otherwise as :meth:`veto` does."""
        return self.book.ask(Asked(Call("", "", fingerprint), None, None, tree_hash))

    def attempts(
        self,
        *,
        fingerprint: str | None = None,
        session: str | None = None,
        repo: str | os.PathLike[str] | None = None,
        older_than_s: float | None = None,
    ) -> list[Attempt]:
        """Return the calls on record, as they began: those for which all that is given holds.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        with self.book.store.reading() as connection:
            return [*table.listed(connection, self._wanted(fingerprint, session, repo, older_than_s))]

    def forget(
        self,
        *,
        fingerprint: str | None = None,
        session: str | None = None,
        repo: str | os.PathLike[str] | None = None,
        older_than_s: float | None = None,
    ) -> int:
        """Delete the calls for which all that is given holds, and return how many they were.

        Raises:
            ValueError: nothing is given.
            LedgerError: the ledger cannot be written.
        """
        scope = self._wanted(fingerprint, session, repo, older_than_s)
        if scope == Scope():
            raise ValueError("say what to forget: fingerprint, session, repo or older_than_s; forget_all() is another")
        with self.book.store.writing() as connection:
            return table.forget(connection, scope)

    def forget_all(self) -> int:
        """Delete all calls, and return how many they were.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        with self.book.store.writing() as connection:
            return table.forget(connection, Scope())

    def close(self) -> None:
        """Close the file. The ledger can be used again afterwards."""
        self.book.store.close()

    def _wanted(
        self,
        fingerprint: str | None,
        session: str | None,
        repo: str | os.PathLike[str] | None,
        older_than_s: float | None,
    ) -> Scope:
        until_ns = None if older_than_s is None else self.book.terms.clock() - round(older_than_s * _SECOND)
        return Scope(fingerprint, session, None if repo is None else os.path.realpath(repo), until_ns=until_ns)
