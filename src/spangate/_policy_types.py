"""Whether a value of a policy file fits a setting of a gate. The setting's own type decides; there is no schema."""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any, Final, Literal, Union, get_args, get_origin

_WORDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "a table"}
_TOML_BITS: Final = 63


def fit(value: Any, hint: Any) -> Any:
    """Return ``value`` as the type ``hint`` wants it: a list as a tuple or a set, a whole number as a float.

    Raises:
        ValueError: it does not fit; the message says what is wanted.
    """
    for kind in _kinds(hint):
        with suppress(ValueError):
            return _fitted(value, kind)
    raise ValueError(wanted(hint))


def wanted(hint: Any) -> str:
    """Say in words what fits ``hint``."""
    return " or ".join(map(_wanted, _kinds(hint))) or "nothing, since it can only be set in Python"


def quoted(value: Any) -> str:
    """Write a value nearly as it stands in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Say what was probably meant, or what there is."""
    known = list(allowed)
    near = difflib.get_close_matches(name, known, 1) or [one for one in known if one.endswith(f".{name}")]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(known)}" if known else "; there are none"


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the alternatives of a type that TOML can write; None is not among them."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        for option in get_args(hint):
            yield from _kinds(option)
    elif hint in _WORDS or origin is Literal or (isinstance(origin, type) and issubclass(origin, Collection)):
        yield hint


def _fitted(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return _scalar(value, kind)
    if origin is Literal:
        if any(type(value) is type(one) and value == one for one in inner):
            return value
    elif issubclass(origin, Mapping):
        if isinstance(value, dict):
            return {key: fit(item, inner[1]) for key, item in value.items()}
    elif isinstance(value, list):
        return (frozenset if issubclass(origin, Set) else tuple)(fit(item, inner[0]) for item in value)
    raise ValueError(wanted(kind))


def _scalar(value: Any, kind: type) -> Any:
    if kind is float and type(value) is int and value.bit_length() <= _TOML_BITS:
        return float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(wanted(kind))
    return value


def _wanted(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return _WORDS[kind]
    if origin is Literal:
        return " or ".join(map(quoted, inner))
    if issubclass(origin, Mapping):
        return f"a table, each value {wanted(inner[1])}"
    return f"a list, each item {wanted(inner[0])}"
