"""What can be wrong with a ledger, and the refusal of a call. Each error says what, where, and what to do."""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from spangate._errors import SpangateError
from spangate._ledger.rows import Veto


class LedgerError(SpangateError):
    """A ledger that cannot be used.

    Args:
        what: what is wrong.
        path: the file.
        fix: what to do about it.
    """

    def __init__(self, what: str, *, path: str, fix: str) -> None:
        super().__init__(what, path, fix)
        self.what = what
        self.path = path
        self.fix = fix

    def __str__(self) -> str:
        """Read as ``file: what is wrong; what to do``."""
        return f"{self.path}: {self.what}; {self.fix}"


class LedgerLockedError(LedgerError):
    """Somebody else has kept the ledger locked for as long as was waited."""


class LedgerReadOnlyError(LedgerError):
    """The file or its directory may not be written."""


class LedgerCorruptError(LedgerError):
    """The file is no ledger, or a damaged one. Nothing is written to it."""


class LedgerVersionError(LedgerError):
    """The file was written by a newer spangate. Nothing is written to it."""


class RetryBlocked(SpangateError):  # noqa: N818  it is no error of the program, but a decision
    """A call was not made, since the same evidence is on record.

    Args:
        tool: the tool.
        veto: the decision, with the earlier call.
        path: the file of the ledger.
    """

    def __init__(self, tool: str, veto: Veto, path: str) -> None:
        super().__init__(tool, veto, path)
        self.tool = tool
        self.veto = veto
        self.path = path

    def __str__(self) -> str:
        """Name the earlier call and its span, and say what would be new evidence."""
        earlier = self.veto.earlier
        where = f" (span {earlier.span_id} of trace {earlier.trace_id})" if earlier and earlier.span_id else ""
        return (
            f"{self.tool} is blocked: {self.veto.reason}{where}. Change what it is called with or what it works on; if"
            f" the repeat is meant: spangate ledger forget --ledger {self.path} --fingerprint {self.veto.fingerprint}"
        )


_READ_ONLY: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_DAMAGED: Final = ("not a database", "malformed", "corrupt", "unsupported file format")


def is_busy(error: BaseException) -> bool:
    """Say whether an error of SQLite means that somebody else has the lock."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def is_closed_to_us(error: BaseException) -> bool:
    """Say whether an error of SQLite means that it may not write where it wants to."""
    return any(mark in str(error) for mark in ("readonly", "unable to open"))


def told(error: sqlite3.Error | OSError, path: str, waited_s: float) -> LedgerError:
    """Return what an error of SQLite or the system means, in our words."""
    text = str(error)
    if isinstance(error, OSError):
        return _of_system(error, path)
    if is_busy(error):
        what = f"somebody else has kept it locked for {waited_s:g} s"
        return LedgerLockedError(what, path=path, fix="end the program that holds it, or raise busy_timeout_s")
    if "readonly" in text:
        return _read_only(path)
    if any(mark in text for mark in _DAMAGED):
        fix = "move it away; a new one is begun in its place"
        return LedgerCorruptError(f"is damaged ({text})", path=path, fix=fix)
    return LedgerError(f"SQLite says: {text}", path=path, fix="look at the disk and the directory that it is in")


def _of_system(error: OSError, path: str) -> LedgerError:
    if error.errno in _READ_ONLY:
        return _read_only(path)
    fix = "give the path of a file in a directory that exists or can be made"
    return LedgerError(f"cannot be opened: {error.strerror or error}", path=path, fix=fix)


def _read_only(path: str) -> LedgerReadOnlyError:
    fix = "let this user write the file and its directory, or name a file elsewhere"
    return LedgerReadOnlyError("may not be written", path=path, fix=fix)
