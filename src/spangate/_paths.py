"""Paths of a repository: where its top is, and which place a path means, so that none leads out of it."""

from __future__ import annotations

import errno
import os
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Final

from spangate._errors import SpangateError
from spangate._git.names import shown

_GIT: Final = ".git"


class PathError(SpangateError, ValueError):
    """A path that is none of the repository's files: it leads out of it, or into what is git's own."""


def top_of(repo: str | PathLike[str]) -> Path:
    """Return the top of the working tree that the directory ``repo`` is in. Git is not asked.

    Raises:
        PathError: it is in none.
    """
    start = Path(repo).resolve()
    for directory in (start, *start.parents):
        if (directory / _GIT).exists():
            return directory
    raise PathError(f"{start} is in no git repository")


def place_in(top: Path, path: str | bytes | PathLike[str] | PathLike[bytes], *, follows: bool = True) -> Path:
    """Return the place on disk that a path means, relative to ``top`` or absolute, with links on the way resolved.

    A link that stands there itself is the place unless ``follows`` says that its target is.

    Raises:
        PathError: the place is outside of ``top``, is ``top``, or is in a directory of git's own.
    """
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise PathError(f"{text!r} names no file")
    asked = top / text
    try:
        place = asked.resolve() if follows else asked.parent.resolve() / asked.name
        _refuse_circle(place if follows else place.parent)
    except (OSError, RuntimeError) as error:  # links that lead in a circle, a name that is too long
        raise PathError(f"{shown(text)!r} leads nowhere: {error}") from None
    if asked.name in ("", "..") or not place.is_relative_to(top) or place == top:
        raise PathError(f"{shown(text)!r} is not inside of {top}")
    if any(part.casefold() == _GIT for part in place.relative_to(top).parts):
        raise PathError(f"{shown(text)!r} is git's own")
    return place


def _refuse_circle(place: Path) -> None:
    """Raise where links lead in a circle: from Python 3.13 on, to resolve them does not."""
    try:
        place.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise


def name_in(top: Path, place: Path) -> str:
    """Return what git calls a place: its path from the top, with slashes, as text that can be sent."""
    relative = PurePosixPath(place.relative_to(top).as_posix())
    return shown(os.fsencode(str(relative)).decode("utf-8", "surrogateescape"))
