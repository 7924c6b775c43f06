"""Writes a cassette: one line a decision, as they come, each flushed, by one tape alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

from spangate._canonical import canonical_json
from spangate.tape._cassette import FORMAT, Decision, Header, read_cassette
from spangate.tape._errors import CassetteError, CassetteLockedError
from spangate.tape._lock import lock
from spangate.tape._outcomes import as_json


class Writer:
    """Appends decisions to a cassette that nobody else writes to meanwhile; each line is flushed.

    Args:
        path: The file, made with mode 0600.
        existing: What to do if there is something in it: ``refuse``, ``overwrite``, or ``append``.
        header: Its first line, if it has none yet.

    Raises:
        CassetteLockedError: another tape records to the file.
        CassetteError: it cannot be opened, or there is something in it.
    """

    def __init__(self, path: str | PathLike[str], existing: str, header: Header) -> None:
        self._source = fspath(path)
        self._file = self._opened(existing)
        self.known: Sequence[Decision] = ()
        try:
            self._begin(existing, header)
        except BaseException:
            self._file.close()
            raise

    def _opened(self, existing: str) -> IO[bytes]:
        try:
            Path(self._source).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._source, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise CassetteError(f"cannot be opened: {error.strerror or error}", source=self._source) from error
        file = os.fdopen(descriptor, "r+b", buffering=0)
        if not lock(file):
            file.close()
            raise CassetteLockedError("another tape is recording to it", source=self._source)
        if existing == "refuse" and os.fstat(file.fileno()).st_size:
            file.close()
            raise CassetteError("is there already: replay it, or record with existing='overwrite'", source=self._source)
        return file

    def _begin(self, existing: str, header: Header) -> None:
        if existing == "overwrite":
            self._file.truncate(0)
        elif os.fstat(self._file.fileno()).st_size:
            found = read_cassette(self._source)
            self.known = found.decisions
            if found.cut:
                self._file.truncate(Path(self._source).read_bytes().rindex(b"\n") + 1)
            return
        told: dict[str, Any] = {"spangate_tape": FORMAT, "commit": header.commit, "dirty": header.dirty}
        self._write({**told, "redacted": list(header.redacted)})

    def add(self, decision: Decision) -> None:
        """Write a decision.

        Raises:
            CassetteError: it cannot be written: no space, or the tape was closed.
        """
        told: dict[str, Any] = {"key": decision.key, "kind": decision.kind, "payload": dict(decision.payload)}
        if decision.is_redacted:
            told["redacted"] = True
        self._write({**told, "outcome": as_json(decision.outcome)})

    def _write(self, told: Mapping[str, Any]) -> None:
        line = f"{canonical_json(told)}\n".encode("utf-8", "surrogatepass")
        try:
            if self._file.write(line) != len(line):
                raise CassetteError("cannot be written: the line is cut", source=self._source)
        except ValueError:
            raise CassetteError("the tape was closed, so nothing can be recorded", source=self._source) from None
        except OSError as error:
            raise CassetteError(f"cannot be written: {error.strerror or error}", source=self._source) from error

    def close(self) -> None:
        """Close the file, which lets others write to it."""
        self._file.close()
