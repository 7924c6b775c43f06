"""Raw payloads beside the runs that were exported without them: files by the hash of their bytes, for a while."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_WEEK_S: Final = 7 * 86_400.0
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_UNFINISHED: Final = ".part"
_ROOM: Final = 0.9
"""To what part of its bound a store is cleared when it is full, so that not every payload clears it again."""
_SWEEPS: Final = 24
"""How often files are looked through in the time that they are kept for."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

_logger = logging.getLogger("spangate")


class SideStore:
    """Keeps raw payloads in a directory: ``GateSpanProcessor(exporter, compact=SideStore("payloads"))``.

    A payload is one file, named by the sha256 of its bytes, which stands on the compact span as
    ``spangate.payload_raw_sha256.<key>``. Directory and files are for their owner alone. Writing is done on the thread
    that judges, and what goes wrong there is counted, logged once, and in nobody's way.

    Several processes may share a directory; each holds it to the bound as it last saw it.

    Args:
        directory: Made with mode 0700 if it is not there.
        max_age_s: Seconds for which a payload is kept after it was last seen.
        max_bytes: Bytes of all payloads; beyond, the oldest go.

    Raises:
        ValueError: a bound that is not positive, or a directory that others may enter.
        OSError: the directory cannot be made.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, max_age_s: float = _WEEK_S, max_bytes: int = 1 << 30
    ) -> None:
        for name, bound in (("max_age_s", max_age_s), ("max_bytes", max_bytes)):
            if not bound > 0:
                raise ValueError(f"{name}={bound!r}: this has to be more than 0")
        self._directory = Path(directory).absolute()  # a program may change its directory
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._made_private()
        self._clock: Callable[[], float] = time.time
        self._numbers = itertools.count()
        self._held = 0
        self._sweep_at = 0.0
        self._errors = 0

    @property
    def errors(self) -> int:
        """How many payloads could not be kept."""
        return self._errors

    def get(self, sha256: str) -> bytes | None:
        """Return a payload; None if it is not here (any more), or its file is not what it was.

        Args:
            sha256: 64 hex digits, as they stand on the span.

        Raises:
            ValueError: a text that is no such hash.
        """
        if not _SHA256.fullmatch(sha256):
            raise ValueError(f"{sha256!r} is no sha256: 64 hex digits are wanted")
        path = self._directory / sha256
        try:
            if path.stat().st_mtime < self._clock() - self._max_age_s:
                return None
            content = path.read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha256 else None

    def put(self, sha256: str, content: bytes) -> None:
        """Keep a payload under its hash. What goes wrong is counted; it raises nothing."""
        try:
            self._put(sha256, content)
        except Exception as error:  # noqa: BLE001  a disk may fail in any way; the run that it belongs to must leave
            self._errors += 1
            if self._errors == 1:
                _logger.warning(
                    "a payload could not be kept in %s: %s; further ones are counted", self._directory, error
                )

    def _put(self, sha256: str, content: bytes) -> None:
        now = self._clock()
        if len(content) > self._max_bytes:
            raise ValueError(f"{len(content)} bytes are more than max_bytes")
        path = self._directory / sha256
        if now >= self._sweep_at:
            self._sweep(now, self._max_bytes)
        with contextlib.suppress(FileNotFoundError):
            known = path.lstat()
            if stat.S_ISREG(known.st_mode) and known.st_size == len(content):
                os.utime(path, (now, now))
                return
        if self._held + len(content) > self._max_bytes:
            self._sweep(now, int(self._max_bytes * _ROOM) - len(content))
        self._write(path, content, now)
        self._held += len(content)

    def _write(self, path: Path, content: bytes, now: float) -> None:
        """Write a file that is there whole or not at all."""
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.{next(self._numbers)}{_UNFINISHED}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
                file.write(content)
            os.utime(unfinished, (now, now))
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def _sweep(self, now: float, room: int) -> None:
        """Delete what is too old, and the oldest of the rest until no more than ``room`` bytes are left."""
        self._sweep_at = now + self._max_age_s / _SWEEPS
        oldest_first = sorted(self._files())
        self._held = sum(size for _, size, _ in oldest_first)
        for written, size, path in oldest_first:
            if written >= now - self._max_age_s and self._held <= max(room, 0):
                break
            path.unlink(missing_ok=True)
            self._held -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each payload was last seen, its bytes and its path; only files of a store are looked at."""
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if _SHA256.fullmatch(entry.name) or (entry.name.startswith(".") and entry.name.endswith(_UNFINISHED)):
                    with contextlib.suppress(FileNotFoundError):  # another process sweeps, too
                        known = entry.stat(follow_symlinks=False)
                        yield known.st_mtime, known.st_size, Path(entry.path)

    def _made_private(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(self._directory.stat().st_mode)
        if os.name == "posix" and mode & _OTHERS:
            raise ValueError(
                f"{self._directory} has mode {mode:04o}: others may enter it; make it 0700 or name another"
            )
