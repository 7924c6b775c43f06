"""What may stand in a cassette: JSON, and bytes as base64; and where in a value something else was found."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BYTES: Final = "$base64"
_LITERAL: Final = "$literal"
"""An object that looks like one of our own is kept inside of one with this key."""
_MARKS: Final = frozenset({_BYTES, _LITERAL})
_NAME: Final = "$"
_MAX_DEPTH: Final = 200


def written(value: Any) -> Any:
    """Return a value as JSON has it. Tuples become arrays. What JSON does not have is left, for the encoder to find."""
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        inner = {key: written(one) for key, one in value.items()}
        return {_LITERAL: inner} if inner.keys() & _MARKS else inner
    if isinstance(value, (list, tuple)):
        return [written(one) for one in value]
    return value


def read(value: Any) -> Any:
    """Return what :func:`written` was given.

    Raises:
        ValueError: bytes that are not base64.
    """
    if isinstance(value, dict):
        if value.keys() == {_BYTES} and isinstance(value[_BYTES], str):
            try:
                return base64.b64decode(value[_BYTES], validate=True)
            except binascii.Error as error:
                raise ValueError(f"bytes that are not base64: {error}") from None
        if value.keys() == {_LITERAL} and isinstance(value[_LITERAL], dict):
            return {key: read(one) for key, one in value[_LITERAL].items()}
        return {key: read(one) for key, one in value.items()}
    return [read(one) for one in value] if isinstance(value, list) else value


def why_no_json(value: Any) -> str:
    """Say what in a value JSON does not have, and where: ``$.messages[0].content: bytes``."""
    return next(_foreign(value, _NAME, ()), f"{_NAME}: nested too deeply, or inside of itself")


def _foreign(value: Any, place: str, above: tuple[int, ...]) -> Iterator[str]:
    if len(above) > _MAX_DEPTH or id(value) in above:
        yield f"{place}: nested too deeply, or inside of itself"
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if isinstance(key, str):
                yield from _foreign(one, f"{place}.{key}", (*above, id(value)))
            else:
                yield f"{place}: a key of type {type(key).__name__}"
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            yield from _foreign(one, f"{place}[{number}]", (*above, id(value)))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: {value}"
    elif not (value is None or isinstance(value, (str, int, float))):
        yield f"{place}: {type(value).__name__}"


def first_difference(before: Any, after: Any, place: str = _NAME) -> str | None:
    """Say where two values of JSON first differ, and how; None if they do not."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key not in before or key not in after:
                gone = "is new" if key not in before else "is gone"
                return f"{place}.{key} {gone}"
            found = first_difference(before[key], after[key], f"{place}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(before, list) and isinstance(after, list):
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            found = first_difference(one, other, f"{place}[{number}]")
            if found is not None:
                return found
        return (
            None if len(before) == len(after) else f"{place}: {len(before)} items were recorded, {len(after)} are here"
        )
    same = type(before) is type(after) and before == after
    return None if same else f"{place}: {_short(before)} was recorded, {_short(after)} is here"


def _short(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
