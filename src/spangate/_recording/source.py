"""Opens recordings: files, pipes and standard input, compressed or not, in a form that can be read twice."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

STANDARD_INPUT: Final = "-"
Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the bytes read so far and those to read in all, both as they lie in the file."""

_GZIP: Final = b"\x1f\x8b"
_BUFFER_BYTES: Final = 1 << 20
"""Lines of agent traces are long: the usual buffer of a few KiB would cost as much as finding the trace ids."""

_TOLD_EVERY_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Source:
    """A recording that is open.

    ``file`` holds it uncompressed, ``raw`` as it lies on the disk (perhaps the same); ``size`` is that of ``raw``.
    """

    name: str
    file: BinaryIO
    raw: BinaryIO
    size: int

    def chunks(
        self, cut: Callable[[BinaryIO], Iterator[bytes]], progress: Progress | None, passes_done: int, passes: int
    ) -> Iterator[bytes]:
        """Yield the pieces into which ``cut`` divides the file, from its beginning, and report progress."""
        self.file.seek(0)
        unsaid = 0
        for chunk in cut(self.file):
            yield chunk
            unsaid += len(chunk)
            if progress is not None and unsaid >= _TOLD_EVERY_BYTES:
                progress(passes_done * self.size + self.raw.tell(), passes * self.size)
                unsaid = 0
        if progress is not None:
            progress((passes_done + 1) * self.size, passes * self.size)


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a recording; ``-`` is standard input. What cannot be read twice is first copied to a temporary file.

    Raises:
        OSError: the file cannot be opened.
    """
    with ExitStack() as stack:
        if os.fspath(path) == STANDARD_INPUT:
            name, raw = "standard input", cast("BinaryIO", sys.stdin.buffer)
        else:
            name, raw = os.fspath(path), stack.enter_context(Path(path).open("rb", buffering=_BUFFER_BYTES))
        if not raw.seekable():
            spool = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(raw, spool)
            raw = cast("BinaryIO", spool)
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        is_gzip = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        file = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
        yield Source(name, cast("BinaryIO", file), raw, size)
