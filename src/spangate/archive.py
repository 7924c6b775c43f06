"""Recorded runs as files: reads every known form trace by trace, however large, and writes two of them.

:func:`read` takes OTLP/JSON (one object a line, or pretty-printed), OTLP protobuf (alone, or strung together as file
exporters do), the native recording, and gzip of any of these. Only the native recording (:class:`Writer`) keeps what
was started, so only there a span that never ended can be seen: OTLP tells of ended spans alone.

The native recording has one JSON object a line. ``{"spangate.recording": 1}`` comes first, with the version of the
format. ``{"resource": 0, "attributes": [...]}`` tells of a resource,
``{"start": {...}, "scope": {...}, "resource": 0}`` of a span that starts,
``{"end": {...}, "scope": {...}, "resource": 0}`` of one that has ended; the span, its scope and
all attributes are written as in OTLP/JSON.

:class:`SideStore` keeps the raw payloads of runs that are exported in their compact form, and :func:`tree_hash` and
:func:`tree_schema_hash` tell two runs apart: in their data, or in their contract.
"""

from __future__ import annotations

import gzip
import itertools
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

from spangate._compact.tree import tree_hash, tree_schema_hash
from spangate._errors import RecordingError
from spangate._otlp.write import write_line
from spangate._recording.forms import Form, form_of
from spangate._recording.native import HEADER, LineWriter
from spangate._recording.source import Progress, Source, open_source
from spangate._records import Span
from spangate._side_store import SideStore

__all__ = [
    "RecordingWarning",
    "SideStore",
    "Trace",
    "Writer",
    "read",
    "tree_hash",
    "tree_schema_hash",
    "write",
    "write_otlp",
]

_SPANS_A_LINE: Final = 512


class RecordingWarning(UserWarning):
    """Something was left out of a recording that could be read all the same."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All spans that a recording has of one trace id, in the order of their starts; there is at least one.

    ``starts_known`` is True if the recording tells of starts too, so that a span without an end was really left open.
    """

    spans: list[Span]
    starts_known: bool


def read(
    path: str | os.PathLike[str], *, progress: Progress | None = None, tell: Callable[[str], None] | None = None
) -> Iterator[Trace]:
    """Read a recording trace by trace, each as soon as the last line that speaks of it has been read.

    The file is gone through twice, which is no slower than to hold it whole: first to learn where each trace ends, then
    to read it. So memory holds only those traces that are incomplete at a place, however large the file is.

    Args:
        path: the file; ``-`` is standard input.
        progress: called now and then with the bytes read so far and those to read in all, both passes counted.
        tell: called with a sentence if something was left out (the last line of a native recording, cut short by a
            crash). Without it that is a :class:`RecordingWarning`.

    Raises:
        RecordingError: it is no recording, or damaged: file, line and fault are named.
        OSError: the file cannot be read.
    """
    with open_source(path) as source:
        try:
            form = form_of(source.file)
            if form is not None:
                yield from _traces(source, form, progress, tell or _warn)
        except RecordingError as error:
            raise error.at(source.name) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RecordingError(f"damaged gzip data: {error}", source=source.name) from None


def _warn(sentence: str) -> None:
    warnings.warn(sentence, RecordingWarning, stacklevel=2)


def _traces(source: Source, form: Form, progress: Progress | None, tell: Callable[[str], None]) -> Iterator[Trace]:
    last, count = _index(source, form, progress)
    gatherer = form.gatherer()
    waiting = iter(last.items())
    trace_id, due = next(waiting, (0, 0))
    for seen, (number, chunk) in enumerate(_pieces(source, form, progress, passes_done=1)):
        if seen == count:
            break
        try:
            gatherer.absorb(chunk)
        except RecordingError as error:
            if not form.starts_known or chunk.endswith(b"\n"):
                raise error.at(source.name, f"{form.unit} {number}") from None
            tell(f"{source.name}: line {number} was cut short while it was written, and is left out")
        while due == number:
            if spans := gatherer.take(trace_id):
                yield Trace(spans, form.starts_known)
            trace_id, due = next(waiting, (0, 0))
    for left in gatherer.left():
        if left in last:
            raise RecordingError(f"trace {left:032x} is elsewhere by now: the file changed while it was read")
        yield Trace(gatherer.take(left), form.starts_known)


def _index(source: Source, form: Form, progress: Progress | None) -> tuple[dict[int, int], int]:
    """Find for each trace the number of the last piece that speaks of it, in that order; and the number of pieces."""
    last: dict[int, int] = {}
    count = 0
    for number, chunk in _pieces(source, form, progress, passes_done=0):
        count += 1
        try:
            found = form.trace_ids(chunk)
        except RecordingError as error:
            raise error.at(source.name, f"{form.unit} {number}") from None
        for trace_id in found:
            last.pop(trace_id, None)
            last[trace_id] = number
    return last, count


def _pieces(source: Source, form: Form, progress: Progress | None, passes_done: int) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, chunk in enumerate(source.chunks(form.cut, progress, passes_done, passes=2), 1):
            if not chunk.isspace():
                yield number, chunk
    except RecordingError as error:
        raise error.at(source.name, f"{form.unit} {number + 1}") from None


class Writer:
    """Writes a native recording to ``stream``, line by line, as spans start and end.

    Every call writes whole lines; when they reach the disk is up to the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines = LineWriter()
        stream.write(HEADER)

    def started(self, span: Span) -> None:
        """Record that ``span`` has started, with what is known of it by then."""
        self._stream.write(self._lines.started(span))

    def ended(self, span: Span) -> None:
        """Record that ``span`` has ended, with all that is known of it."""
        self._stream.write(self._lines.ended(span))


def write(path: str | os.PathLike[str], spans: Iterable[Span]) -> None:
    """Write a native recording of ``spans``, which stand in the order of their starts; open ones stay open."""
    with Path(path).open("w", encoding="ascii") as stream:
        writer = Writer(stream)
        for span in spans:
            writer.started(
                span
                if span.is_open
                else replace(span, attributes={}, events=(), links=(), status="UNSET", status_description="")
            )
            if not span.is_open:
                writer.ended(span)


def write_otlp(path: str | os.PathLike[str], spans: Iterable[Span]) -> None:
    """Write ``spans`` as OTLP/JSON lines. OTLP has no open spans: one without an end is written without an end time."""
    waiting = iter(spans)
    with Path(path).open("w", encoding="ascii") as stream:
        while some := list(itertools.islice(waiting, _SPANS_A_LINE)):
            stream.write(write_line(some))
