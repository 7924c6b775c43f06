"""Reading values that foreign code recorded: JSON in texts, ids, numbers. What makes no sense is absent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from spangate._records import ABSENT

MAX_PARSED: Final = 4 << 20
"""Longest text that is parsed, in characters. A longer one is unknown: parsing it would hold up other threads."""

OBJECT: Final = (dict, MappingProxyType)
"""What a JSON object is here. Asking for these two is ten times as fast as asking for any mapping."""

_NO_ID: Final = frozenset({"", "<not specified>", "unknown", "None", "null"})
_decode: Final = json.JSONDecoder().decode
_OPENS: Final = ("{", "[")
_JSON_START: Final = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{"\]])')


def parsed(value: Any) -> Any:
    """Return what a JSON text says, a structure as it is, and ``ABSENT`` for all else, cut JSON included."""
    if isinstance(value, str):
        if len(value) > MAX_PARSED:
            return ABSENT
        try:
            return _decode(value)
        except (ValueError, RecursionError):
            return ABSENT
    if isinstance(value, list | tuple):
        return [parsed(item) if isinstance(item, str) and item.startswith(_OPENS) else item for item in value]
    return value if isinstance(value, OBJECT) else ABSENT


def parsed_object(value: Any) -> Mapping[str, Any]:
    """Return the JSON object that ``value`` says or is; an empty one if it is none."""
    found = parsed(value)
    return found if isinstance(found, OBJECT) else {}


def text_or_json(value: Any) -> Any:
    """Return what ``value`` says if it looks like JSON, a plain text as it is; JSON that was cut off is absent."""
    if isinstance(value, str) and not _JSON_START.match(value):
        return value
    return parsed(value)


def call_id(value: Any) -> str | None:
    """Return an id as text. What frameworks write where they know none is no id."""
    if isinstance(value, str):
        return None if value in _NO_ID else value
    return str(value) if type(value) is int else None


def text(value: Any) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def first(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first of ``keys`` that was recorded, else ``ABSENT``."""
    for key in keys:
        value = attributes.get(key, ABSENT)
        if value is not ABSENT:
            return value
    return ABSENT
