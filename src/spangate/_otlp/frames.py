"""How protobuf messages are strung together in a file, without which none of them can be read.

Three ways are known: one message alone (or several, one after the other, which protobuf takes for one); each message
after its length as a varint (the OTLP file exporter of the specification); each after its length as four bytes, the
highest first (the file exporter of the Collector).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, TypeAlias

from spangate._errors import RecordingError

Frames: TypeAlias = Callable[[BinaryIO], Iterator[bytes]]

_FIELD_1: Final = 0x0A
"""The tag of ``resource_spans``, with which every message that is not empty begins."""
_SHORTEST_SPANS: Final = 16
"""No message that holds a span is shorter; no message is so long that its length begins with such a byte."""
_CUT: Final = "cut short: the length of a message is not complete"
_PREFIX_BYTES: Final = 4
_MAX_VARINT_BYTES: Final = 5
_MORE: Final = 0x80
"""The bit of a varint's byte that says that another byte follows."""


def framing_of(head: bytes) -> Frames | None:
    """Tell from the first bytes of a file how its messages are strung together; None if it is no OTLP protobuf."""
    if head[:1] == bytes([_FIELD_1]):
        return _fields
    if len(head) > _PREFIX_BYTES and head[0] < _SHORTEST_SPANS and head[_PREFIX_BYTES] == _FIELD_1:
        return _after_four_bytes
    behind = len(_read_varint(io.BytesIO(head)))
    return _after_varints if head[behind : behind + 1] == bytes([_FIELD_1]) else None


def _fields(file: BinaryIO) -> Iterator[bytes]:
    """Cut a message that may be as large as the file into messages of one ``resource_spans`` each."""
    while tag := file.read(1):
        if tag[0] != _FIELD_1:
            raise RecordingError("no OTLP trace data in protobuf: a field that is not resource_spans")
        varint = _read_varint(file)
        yield tag + varint + _read(file, _length(varint))


def _after_varints(file: BinaryIO) -> Iterator[bytes]:
    while varint := _read_varint(file):
        yield _read(file, _length(varint))


def _after_four_bytes(file: BinaryIO) -> Iterator[bytes]:
    while prefix := file.read(_PREFIX_BYTES):
        if len(prefix) < _PREFIX_BYTES:
            raise RecordingError(_CUT)
        yield _read(file, int.from_bytes(prefix, "big"))


def _read_varint(file: BinaryIO) -> bytes:
    varint = b""
    while len(varint) < _MAX_VARINT_BYTES and (byte := file.read(1)):
        varint += byte
        if byte[0] < _MORE:
            break
    return varint


def _length(varint: bytes) -> int:
    if not varint or varint[-1] >= _MORE:
        raise RecordingError(_CUT)
    return sum((byte & (_MORE - 1)) << (7 * place) for place, byte in enumerate(varint))


def _read(file: BinaryIO, length: int) -> bytes:
    message = file.read(length)
    if len(message) < length:
        raise RecordingError(f"cut short: {length} bytes are announced, {len(message)} are left")
    return message
