"""What stands on disk under a name: its hash, and what kind of thing it is. Links are never followed."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["file", "executable", "link", "special"]
Identity: TypeAlias = tuple[int, int, int, int, int]
"""When a file was last touched, nanoseconds since the epoch, and then whatever else tells one from another."""
_CHUNK: Final = 1 << 20
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
"""What is a file when it is looked at may be a link, or a pipe, when it is opened."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file by the SHA-256 of its bytes as they are on disk, a link by that of the text of its target.

    ``kind`` is ``whole`` for a directory that git names as one: a submodule, or a repository inside this one. Its hash
    is that of all that is in it. ``special`` are pipes, sockets and devices, which are not opened.
    """

    kind: Kind | Literal["whole"]
    sha256: str


def identity_of(path: Path) -> Identity | None:
    """Return what is another after each change of a file; None where nothing is, or nothing tells."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if os.name != "posix":  # elsewhere the time of the last change can be set
        return None
    return found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def content_of(path: Path, *, has_modes: bool = True) -> Content | None:
    """Return what is there: None if nothing is, also if it vanishes meanwhile, or if a directory is.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return Content("link", hashlib.sha256(link_text(path)).hexdigest())
        if stat.S_ISDIR(found.st_mode):
            return None
        if not stat.S_ISREG(found.st_mode):
            return Content("special", "")
        kind: Kind = "executable" if has_modes and found.st_mode & stat.S_IXUSR else "file"
        return Content(kind, _sha256(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def link_text(path: Path) -> bytes:
    """Return the target of a link as it was written. Raises :class:`OSError`."""
    return os.readlink(os.fsencode(path))  # noqa: PTH115  a Path would make the text another


def _sha256(path: Path) -> str:
    """Hash a file piece by piece, however large it is."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _FLAGS), "rb", buffering=0) as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()
