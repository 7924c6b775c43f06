"""The forms a recording may have, told by its content, and for each how it is cut, indexed and gathered by trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal, Protocol

from spangate._errors import RecordingError
from spangate._otlp import json as otlp_json
from spangate._otlp.frames import framing_of
from spangate._recording import native
from spangate._records import Span

try:
    from spangate._otlp.fast import read_line as _read_otlp_line
except ImportError:  # msgspec comes with the extra "cli"; without it the strict reader reads everything
    from spangate._otlp.json import read_line as _read_otlp_line

_TRACE_ID: Final = re.compile(rb'"traceId"\s*:\s*"([0-9a-fA-F]{32})"')
_CONTINUED: Final = (b"{", b"[", b",", b":")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that JSON never holds, and that no protobuf message with a span in it is without."""

_HEAD_BYTES: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_KNOWN: Final = "OTLP/JSON, OTLP protobuf or a recording of spangate, in UTF-8 or gzip"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class Gatherer(Protocol):
    """Takes in the pieces of a recording and hands over spans trace by trace."""

    def absorb(self, chunk: bytes) -> None:
        """Take in one piece. Raises RecordingError if it cannot be read."""

    def take(self, trace_id: int) -> list[Span]:
        """Hand over the spans of a trace, in the order of their starts, and forget them; none if there are none."""

    def left(self) -> list[int]:
        """Return the ids of the traces that are not handed over."""


@dataclass(frozen=True)
class Form:
    """One form of a recording.

    ``cut`` divides the file into pieces, ``unit`` is what a person calls one, ``trace_ids`` finds quickly which traces
    a piece may hold spans of: never too few, though a link may make them too many.
    """

    cut: Callable[[BinaryIO], Iterator[bytes]]
    unit: Literal["line", "message", "document"]
    trace_ids: Callable[[bytes], Collection[int]]
    gatherer: Callable[[], Gatherer]
    starts_known: bool = False


class _Ended:
    """Gathers spans of which only the end is told, in any order."""

    def __init__(self, read: Callable[[bytes], list[Span]]) -> None:
        self._read = read
        self._spans: dict[int, list[Span]] = {}

    def absorb(self, chunk: bytes) -> None:
        gathered = self._spans
        for span in self._read(chunk):
            found = gathered.get(span.trace_id)
            if found is None:
                gathered[span.trace_id] = [span]
            else:
                found.append(span)

    def take(self, trace_id: int) -> list[Span]:
        return sorted(self._spans.pop(trace_id, ()), key=_start_order)

    def left(self) -> list[int]:
        return list(self._spans)


def _start_order(span: Span) -> tuple[int, int]:
    """Of spans that start at once the longest comes first: a parent before its children, on a coarse clock too."""
    return span.start_ns, -(span.end_ns or 1 << 64)


def form_of(file: BinaryIO) -> Form | None:
    """Tell the form of a recording by its content; None if there is nothing in it.

    Raises:
        RecordingError: it has none of the known forms.
    """
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    if _ZSTD in head[: 2 * len(_ZSTD)]:
        raise RecordingError("compressed with zstd: decompress it first")
    if _CONTROL.search(head):
        return _protobuf(head)
    first = next((line for line in _lines(file) if not line.isspace()), b"")
    if not first:
        return None
    if not first.lstrip().startswith(b"{"):
        raise RecordingError(f"no recording: {_KNOWN} is wanted")
    if f'"{native.MARK}"'.encode() in first[:_HEAD_BYTES]:
        return Form(_lines, "line", _trace_ids, native.LineReader, starts_known=True)
    if first.rstrip().endswith(_CONTINUED):
        return Form(_whole, "document", _trace_ids, lambda: _Ended(_read_documents))
    return Form(_lines, "line", _trace_ids, lambda: _Ended(_read_otlp_line))


def _protobuf(head: bytes) -> Form:
    framing = framing_of(head)
    if framing is None:
        raise RecordingError(f"no recording: {_KNOWN} is wanted")
    from spangate._otlp import proto  # protobuf takes long to import, and most recordings are JSON

    return Form(framing, "message", proto.trace_ids, lambda: _Ended(proto.read_message))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    file.seek(len(_BOM) if file.read(len(_BOM)) == _BOM else 0)
    yield from iter(file.readline, b"")  # iterating over the file itself would close it with this generator


def _whole(file: BinaryIO) -> Iterator[bytes]:
    yield b"".join(_lines(file))


def _read_documents(data: bytes) -> list[Span]:
    return [span for line, document in otlp_json.parse_documents(data) for span in _read_document(document, line)]


def _read_document(document: object, line: int) -> list[Span]:
    try:
        return otlp_json.read_document(document)
    except RecordingError as error:
        raise error.at("", f"document in line {line}") from None


def _trace_ids(line: bytes) -> set[int]:
    return {int(digits, 16) for digits in set(_TRACE_ID.findall(line))}
