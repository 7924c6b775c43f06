"""Strict access to the fields of parsed OTLP/JSON: null and absent mean "not there", a wrong type is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from spangate._errors import RecordingError

INT64: Final = range(-(1 << 63), 1 << 63)
UINT64: Final = range(1 << 64)
UINT32: Final = range(1 << 32)

_WHOLE: Final = re.compile(r"-?[0-9]{1,20}")
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_SHOWN_CHARACTERS: Final = 40

_Item = TypeVar("_Item")


def kind_of(value: Any) -> str:
    """Name a parsed JSON value for an error message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def each(items: Iterable[Any], name: str, read: Callable[[Any], _Item]) -> list[_Item]:
    """Read every item of the list ``name``; an error gains the place of its item."""
    done: list[_Item] = []
    try:
        for item in items:
            done.append(read(item))  # noqa: PERF401 - the length of what is done is the place of an error
    except RecordingError as error:
        raise error.within(f"{name}[{len(done)}]") from None
    return done


def a_list(holder: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under ``key``; where there is none it is empty."""
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise RecordingError(f"an array is wanted, not {kind_of(value)}", field=key)
    return value


def an_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object."""
    if not isinstance(value, dict):
        raise RecordingError(f"an object is wanted, not {kind_of(value)}")
    return value


def object_at(holder: Mapping[str, Any], key: str, read: Callable[[dict[str, Any]], _Item]) -> _Item:
    """Read the object under ``key``, an empty one where there is none; an error gains the key."""
    value = holder.get(key)
    try:
        return read({} if value is None else an_object(value))
    except RecordingError as error:
        raise error.within(key) from None


def text_at(holder: Mapping[str, Any], key: str) -> str:
    """Return the text under ``key``; where there is none it is empty."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RecordingError(f"text is wanted, not {kind_of(value)}", field=key)
    return value


def whole(value: Any, allowed: range) -> int:
    """Read a whole number that stands as a number or as decimal text."""
    number = int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value
    if type(number) is not int:
        raise RecordingError(f"a whole number is wanted, not {kind_of(value)}")
    if number not in allowed:
        raise RecordingError(f"{kind_of(number)} is not within {allowed.start} and {allowed.stop - 1}")
    return number


def whole_at(holder: Mapping[str, Any], key: str, allowed: range) -> int:
    """Return the whole number under ``key``; where there is none it is zero, as in protobuf."""
    value = holder.get(key)
    if value is None:
        return 0
    try:
        return whole(value, allowed)
    except RecordingError as error:
        raise error.within(key) from None


def id_at(holder: Mapping[str, Any], key: str, size: int) -> int:
    """Return the id of ``size`` bytes under ``key``, from hex digits."""
    text = holder.get(key)
    if not isinstance(text, str) or len(text) != 2 * size or not _HEX.fullmatch(text):
        what = "which is missing" if text is None else f"not {kind_of(text)}"
        raise RecordingError(f"an id of {2 * size} hex digits is wanted, {what}", field=key)
    number = int(text, 16)
    if not number:
        raise RecordingError("an id of zeros only is not valid", field=key)
    return number


def name_at(holder: Mapping[str, Any], key: str, prefix: str, names: tuple[str, ...]) -> str:
    """Return the name of the enum value under ``key``, which stands as its number or as its name in full."""
    value = holder.get(key)
    if value is None:
        return names[0]
    if type(value) is int and value in range(len(names)):
        return names[value]
    if isinstance(value, str) and value.startswith(prefix) and value[len(prefix) :] in names:
        return value[len(prefix) :]
    known = f"0 to {len(names) - 1} or a name as {prefix}{names[-1]}"
    raise RecordingError(f"{known} is wanted, not {kind_of(value)}", field=key)
