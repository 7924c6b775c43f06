"""OTLP/JSON attribute values: ``AnyValue`` objects to Python values and back.

A value that OTLP leaves out (``{}`` or null) is None, which is neither absent nor zero. Arrays become tuples, as the
SDK keeps them.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from spangate._errors import RecordingError
from spangate._otlp.fields import INT64, a_list, an_object, each, kind_of, whole

MAX_DEPTH: Final = 64
"""How deep arrays and key-value lists may be nested: protobuf itself stops before."""

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DOUBLE_NAMES: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_URL_SAFE: Final = str.maketrans("-_", "+/")


def read_attributes(holder: Mapping[str, Any], depth: int = 0, key: str = "attributes") -> dict[str, Any]:
    """Read the list of key-value pairs under ``key``; of two with one name the last counts."""
    return dict(each(a_list(holder, key), key, lambda pair: _read_pair(pair, depth)))


def _read_pair(pair: Any, depth: int) -> tuple[str, Any]:
    name = an_object(pair).get("key")
    if not isinstance(name, str):
        raise RecordingError(f"text is wanted, not {kind_of(name)}", field="key")
    try:
        return name, read_value(pair.get("value"), depth)
    except RecordingError as error:
        raise error.within("value") from None


def read_value(value: Any, depth: int = 0) -> Any:
    """Read an ``AnyValue``; fields that are not known are passed over.

    Raises:
        RecordingError: it holds two values, or one that is not of its kind.
    """
    if value is None:
        return None
    held = [(kind, raw) for kind, raw in an_object(value).items() if kind in _READERS and raw is not None]
    if not held:
        return None
    if len(held) > 1:
        raise RecordingError(f"one value is wanted, not {' and '.join(kind for kind, _ in held)}")
    kind, raw = held[0]
    if depth == MAX_DEPTH:
        raise RecordingError(f"nested more than {MAX_DEPTH} deep")
    try:
        return _READERS[kind](raw, depth)
    except RecordingError as error:
        raise error.within(kind) from None


def _read_text(raw: Any, _depth: int) -> str:
    if not isinstance(raw, str):
        raise RecordingError(f"text is wanted, not {kind_of(raw)}")
    return raw


def _read_bool(raw: Any, _depth: int) -> bool:
    if not isinstance(raw, bool):
        raise RecordingError(f"true or false is wanted, not {kind_of(raw)}")
    return raw


def _read_int(raw: Any, _depth: int) -> int:
    return whole(raw, INT64)


def _read_double(raw: Any, _depth: int) -> float:
    if isinstance(raw, str):
        if raw in _DOUBLE_NAMES:
            return _DOUBLE_NAMES[raw]
        if _NUMBER.fullmatch(raw):
            return float(raw)
    if type(raw) not in {int, float}:
        raise RecordingError(f"a number, NaN or Infinity is wanted, not {kind_of(raw)}")
    try:
        return float(raw)
    except OverflowError:
        raise RecordingError("a number of more than 64 bits is no double") from None


def _read_array(raw: Any, depth: int) -> tuple[Any, ...]:
    return tuple(each(a_list(an_object(raw), "values"), "values", lambda item: read_value(item, depth + 1)))


def _read_kvlist(raw: Any, depth: int) -> dict[str, Any]:
    return read_attributes(an_object(raw), depth + 1, "values")


def _read_bytes(raw: Any, depth: int) -> bytes:
    text = _read_text(raw, depth).translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RecordingError("this is not base64") from None


_READERS: Final[Mapping[str, Callable[[Any, int], Any]]] = {
    "stringValue": _read_text,
    "boolValue": _read_bool,
    "intValue": _read_int,
    "doubleValue": _read_double,
    "arrayValue": _read_array,
    "kvlistValue": _read_kvlist,
    "bytesValue": _read_bytes,
}


def write_attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write attributes as the list of key-value pairs that OTLP/JSON wants."""
    return [{"key": str(name), "value": write_value(value)} for name, value in attributes.items()]


def write_value(value: Any) -> dict[str, Any]:
    """Write a value as an ``AnyValue``. A whole number beyond 64 bits and an object of another kind become text."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and value in INT64:
        return {"intValue": str(int(value))}
    if isinstance(value, float):
        return {"doubleValue": _double_name(value)}
    return _write_compound(value)


def _write_compound(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": write_attributes(value)}}
    if isinstance(value, bytes | bytearray):
        return {"bytesValue": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {"arrayValue": {"values": [write_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _double_name(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
