"""What values weigh in bytes of UTF-8, and what is wrong with texts: half a character, JSON that was cut off.

Everything here is made for many small values and a few huge ones: ASCII is told in constant time, and a huge text is
gone through in slices, so that no other thread waits for one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from spangate._records import Span

NUMBER_BYTES: Final = 8
"""What a number weighs on the wire, whatever its digits."""

_SLICE: Final = 1 << 18
_MAX_DEPTH: Final = 16
_MAX_PARSED: Final = 1 << 17
_TAIL: Final = len("-Infinity")
_CLOSING: Final = {"{": "}", "[": "]"}
_JSON_START: Final = re.compile(r'\{\s*"|\[\s*[\[{"]')


def text_bytes(text: str) -> int:
    """Return the length of ``text`` in UTF-8. Half a surrogate pair counts as the three bytes it would be."""
    if text.isascii():
        return len(text)
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in _slices(text))


def value_bytes(value: Any) -> int:
    """Return what an attribute value weighs: texts in UTF-8, a number 8 bytes, what holds others the sum of them."""
    return _value_bytes(value, _MAX_DEPTH)


def mapping_bytes(attributes: Mapping[str, Any]) -> int:
    """Return what attributes weigh, keys and values."""
    total = text_bytes("".join(attributes))
    for value in attributes.values():
        kind = type(value)
        if kind is str:
            total += len(value) if value.isascii() else text_bytes(value)
        elif kind is int or kind is float:
            total += NUMBER_BYTES
        else:
            total += _value_bytes(value, _MAX_DEPTH)
    return total


def span_bytes(span: Span) -> int:
    """Return what the attributes and events of ``span`` weigh: nearly what it will cost an exporter."""
    if span.weight is None:
        span.weight = mapping_bytes(span.attributes)
        for event in span.events:
            span.weight += text_bytes(event.name) + mapping_bytes(event.attributes)
    return span.weight


def recorded_bytes(value: Any) -> int | None:
    """Return the length in UTF-8 of a recorded value: a text as it stands, anything else as its JSON, else None."""
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, bytes):
        return len(value)
    try:
        return text_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        return None


def has_lone_surrogate(text: str) -> bool:
    """Say whether ``text`` holds half a character, which UTF-8 has no bytes for and exporters stumble over."""
    if text.isascii():
        return False
    try:
        for part in _slices(text):
            part.encode()
    except UnicodeEncodeError:
        return True
    return False


def is_cut_json(text: str) -> bool:
    """Say whether ``text`` is the beginning of a JSON object or list whose end is missing.

    Judged by the last character, so a cut right behind an inner bracket of the same kind goes unseen; what merely
    starts like JSON (a log line, a repr, JSON with words behind it) is not cut.
    """
    closing = _CLOSING.get(text[:1])
    if closing is None or text.endswith(closing) or not _JSON_START.match(text) or text.rstrip().endswith(closing):
        return False
    return len(text) > _MAX_PARSED or _ends_early(text)


def _ends_early(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - _TAIL
    except (ValueError, RecursionError):
        return False
    return False


def _value_bytes(value: Any, depth: int) -> int:
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, bool):
        return 1
    if isinstance(value, (tuple, list)):
        parts: Iterable[Any] = value
    elif isinstance(value, (int, float)):
        return NUMBER_BYTES
    elif isinstance(value, bytes):
        return len(value)
    elif isinstance(value, Mapping):
        parts = chain.from_iterable(value.items())
    else:
        return 0 if value is None else NUMBER_BYTES
    total = 0
    if depth:
        for part in parts:
            total += _value_bytes(part, depth - 1)
    return total


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))
