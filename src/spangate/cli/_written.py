"""Files that a command writes: whole or not at all, and standard output where - is their name."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

STANDARD_OUTPUT: Final = "-"
_MODE: Final = 0o666


def write_whole(name: str, pieces: Iterable[str]) -> None:
    """Write the pieces to a file in UTF-8. A file that is there is replaced once all of it is written, not before.

    What is no regular file, a pipe for example, is written to; - is standard output.

    Raises:
        OSError: it cannot be written. What was there is there still.
    """
    if name == STANDARD_OUTPUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode())
        sys.stdout.flush()
        return
    place = Path(name).resolve()
    if place.exists() and not place.is_file():
        with place.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(pieces)
        return
    _replace(place, pieces)


def _replace(place: Path, pieces: Iterable[str]) -> None:
    handle, made = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:  # noqa: PTH123  it is open already
            stream.writelines(pieces)
        Path(made).chmod(_mode(place))
        Path(made).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(made).unlink()
        raise


def _mode(place: Path) -> int:
    """Return the permissions that the file has, or that a new one would have."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(place.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return _MODE & ~mask
