"""Names of files as text that can be sent: UTF-8 as it is, other bytes as git quotes them."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = re.compile(rb"\\(?:([0-3][0-7]{2})|(.))", re.DOTALL)


def shown(name: str) -> str:
    r"""Return a name as text that can be sent: one with bytes that are not UTF-8 as git quotes it, ``"caf\351"``."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raw = name.encode("utf-8", "surrogateescape")
        plain = {ord('"'): '\\"', ord("\\"): "\\\\"}
        return '"' + "".join(plain.get(byte) or _octal(byte) for byte in raw) + '"'
    return name


def name_of(text: str) -> str:
    """Return the name that is :func:`shown` as ``text``."""
    if not (text.startswith('"') and text.endswith('"') and "\\" in text):
        return text
    plain = _QUOTED.sub(_unquoted, text[1:-1].encode("utf-8")).decode("utf-8", "surrogateescape")
    return plain if shown(plain) == text else text


def _unquoted(piece: re.Match[bytes]) -> bytes:
    octal, character = piece.groups()
    return character if octal is None else bytes([int(octal, 8) & 0xFF])


def _octal(byte: int) -> str:
    return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"\\{byte:03o}"
