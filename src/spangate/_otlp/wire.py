"""OTLP's protobuf bytes written directly: numbers, texts and attributes, each as the field of a message.

A message object for every value, copied into the message around it at each level, takes six times as long. The bytes
are those that protobuf itself writes: fields in the order of their numbers, and none for what has its default value.
Numbers of fields: https://github.com/open-telemetry/opentelemetry-proto, common.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_FIXED64: Final[Callable[[int], bytes]] = struct.Struct("<Q").pack
_DOUBLE: Final[Callable[[float], bytes]] = struct.Struct("<d").pack
_BITS: Final = 7
_MAX_HEADS: Final = 1024


def varint(number: int) -> bytes:
    """Write a number from 0 on, seven bits a byte."""
    return _VARINTS[number] if number < _SMALL else _long_varint(number)


def _long_varint(number: int) -> bytes:
    written = bytearray()
    while number >> _BITS:
        written.append(number & 0x7F | 0x80)
        number >>= _BITS
    written.append(number)
    return bytes(written)


def _text_head(size: int) -> bytes:
    """Write what stands before a text of ``size`` bytes that is the value of an attribute."""
    length = _long_varint(size)
    return b"\x12" + _long_varint(1 + len(length) + size) + b"\x0a" + length


_SMALL: Final = 2048
_VARINTS: Final = [_long_varint(number) for number in range(_SMALL)]
_TEXT_HEADS: Final = [_text_head(size) for size in range(_SMALL)]
_heads: dict[str, bytes] = {}


def block(tag: bytes, content: bytes) -> bytes:
    """Write a field that holds bytes: a text or a message. ``tag`` is its number and kind."""
    return b"".join((tag, varint(len(content)), content))


def text(tag: bytes, content: str | None) -> bytes:
    """Write a text, nothing if there is none.

    Raises:
        UnicodeEncodeError: it holds half a character.
    """
    return block(tag, content.encode()) if content else b""


def count(tag: bytes, number: int) -> bytes:
    """Write a number from 0 on, nothing for 0."""
    return tag + varint(number) if number else b""


def time(tag: bytes, nanoseconds: int | None) -> bytes:
    """Write a moment, nothing for 0 or None.

    Raises:
        struct.error: it does not fit into 64 bits, or is no whole number.
    """
    return tag + _FIXED64(nanoseconds) if nanoseconds else b""


def attributes(tag: bytes, values: Mapping[str, Any] | None) -> list[bytes]:
    """Write attributes as the repeated field ``tag``. Returns the pieces in order, to be joined with what is around.

    Raises:
        UnicodeEncodeError: a text holds half a character.
        OverflowError: a whole number does not fit into 64 bits.
        TypeError: a value is nothing that OTLP has.
    """
    pieces: list[bytes] = []
    for key, value in values.items() if values else ():
        head = _heads.get(key) or _head(key)
        if type(value) is str:
            content = value.encode()
            size = len(content)
            before = _TEXT_HEADS[size] if size < _SMALL else _text_head(size)
            size += len(head) + len(before)
            pieces += (tag, _VARINTS[size] if size < _SMALL else _long_varint(size), head, before, content)
        else:
            content = head + block(b"\x12", any_value(value))
            pieces += (tag, varint(len(content)), content)
    return pieces


def _head(key: str) -> bytes:
    """Return the key as a field, and remember it: there are few, and they come again."""
    if len(_heads) >= _MAX_HEADS:
        _heads.clear()
    written = _heads[key] = text(b"\x0a", key)
    return written


def any_value(value: Any) -> bytes:  # noqa: PLR0911  one return for each type
    """Write the content of an ``AnyValue``. Kinds are told apart in the order in which the SDK does it.

    Versions of the SDK differ on None, so it is none of them here.
    """
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, str):
        return block(b"\x0a", value.encode())
    if isinstance(value, int):
        return b"\x18" + varint(_twos_complement(value))
    if isinstance(value, float):
        return b"\x21" + _DOUBLE(value)
    if isinstance(value, bytes):
        return block(b"\x3a", value)
    if isinstance(value, Sequence):
        return block(b"\x2a", b"".join([block(b"\x0a", any_value(item)) for item in value]))
    if isinstance(value, Mapping):
        return block(b"\x32", b"".join(attributes(b"\x0a", {str(key): item for key, item in value.items()})))
    raise TypeError(f"OTLP has no {type(value).__name__}")


def _twos_complement(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError("a whole number of OTLP has 64 bits")
    return number & 0xFFFF_FFFF_FFFF_FFFF
