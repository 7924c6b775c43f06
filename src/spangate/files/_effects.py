"""What is done to files: written whole or not at all, deleted, moved."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeAlias

from spangate._git import shown
from spangate._git.contents import content_of
from spangate._journal import AFTER, BEFORE, OP, PATH, TARGET
from spangate._paths import PathError, name_in, place_in, top_of
from spangate.files._span import opened

Name: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def write(repo: str | PathLike[str], path: Name, data: bytes | str) -> str:
    """Write a file, with the directories above it, and a span that tells it.

    Another process sees what was there or what is written, never half of it. An existing file keeps its mode; a link is
    followed, if it leads to a place inside. Further hard links to the file keep what was there.

    Args:
        repo: A directory in the working tree.
        path: Relative to the top of the tree.
        data: What is to be in the file; text as UTF-8.

    Returns:
        The SHA-256 of what was written, in hex.

    Raises:
        PathError: ``repo`` is in no repository, or the path leads out of it or into ``.git``.
        OSError: it could not be written. The span tells, too.
    """
    top = top_of(repo)
    place = _place(top, path)
    content = data.encode("utf-8") if isinstance(data, str) else bytes(data)
    after = hashlib.sha256(content).hexdigest()
    with opened("files.write", _attributes("write", top, place)) as span:
        place.parent.mkdir(parents=True, exist_ok=True)
        _replace(place, content)
        span.set_attribute(AFTER, after)
    return after


def delete(repo: str | PathLike[str], path: Name) -> None:
    """Delete a file, or a link, with a span that tells it.

    Args:
        repo: A directory in the working tree.
        path: Relative to the top of the tree.

    Raises:
        PathError: as for :func:`write`; a directory is no file.
        OSError: it could not be deleted, or is not there. The span tells, too.
    """
    top = top_of(repo)
    place = _place(top, path, follows=False)
    _refuse_directory(place)
    with opened("files.delete", _attributes("delete", top, place)):
        place.unlink()


def move(repo: str | PathLike[str], source: Name, target: Name) -> None:
    """Move a file, or a link, over what may be at ``target``, with a span that tells both.

    Args:
        repo: A directory in the working tree.
        source: What is moved, relative to the top of the tree.
        target: Where to; directories above it are made.

    Raises:
        PathError: as for :func:`write`; a directory is no file.
        OSError: it could not be moved, or is not there. The span tells, too.
    """
    top = top_of(repo)
    old, new = _place(top, source, follows=False), _place(top, target, follows=False)
    _refuse_directory(old)
    _refuse_directory(new)
    attributes = {**_attributes("move", top, old), TARGET: name_in(top, new)}
    with opened("files.move", attributes) as span:
        moved = content_of(old)
        new.parent.mkdir(parents=True, exist_ok=True)
        os.replace(old, new)  # noqa: PTH105  a Path would say the same
        if moved is not None:
            span.set_attribute(AFTER, moved.sha256)


def _place(top: Path, path: Name, *, follows: bool = True) -> Path:
    """Return the place of a path that has to be relative. Raises :class:`PathError`."""
    if Path(os.fsdecode(path)).is_absolute():
        raise PathError(f"{shown(os.fsdecode(path))!r} is absolute: name it relative to {top}")
    return place_in(top, path, follows=follows)


def _attributes(op: str, top: Path, place: Path) -> dict[str, Any]:
    before = content_of(place)
    known = {} if before is None else {BEFORE: before.sha256}
    return {OP: op, PATH: name_in(top, place), **known}


def _refuse_directory(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        raise PathError(f"{place} is a directory: files are deleted and moved one by one")


def _replace(place: Path, content: bytes) -> None:
    """Put a new file in the place of the old one, with its mode, and its owner where that may be given."""
    beside = place.with_name(f".spangate-{token_hex(8)}")
    number = os.open(beside, _NEW, 0o666)  # less what the umask takes away
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            old = place.stat()
            with suppress(OSError):
                os.chown(beside, old.st_uid, old.st_gid)
            beside.chmod(stat.S_IMODE(old.st_mode))
        beside.replace(place)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
