"""The identity of a generation's request: the hashes by which two runs may be compared at all.

Canonical JSON (:mod:`spangate._canonical`) of what was asked, sha256, the first 16 hex digits; nothing of the response,
nothing normalised. A prompt is hashed as ``{"system", "user", "tools"}``: :mod:`spangate._fingerprint.prompt` says how
messages become the first two. Tools that were not recorded are ``null``, since nobody knows that there were none; no
tools are ``[]``.

What is absent, or is not JSON (NaN, bytes, a set), has no hash: a request without a prompt has no ``prompt.hash`` and
no ``fingerprint.tuple``, never the hash of an empty one. Where a prompt is there and has none, ``fingerprint.gap`` says
why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from spangate import _keys as keys
from spangate._canonical import canonical_json, text_hash
from spangate._dialects._base import Request
from spangate._fingerprint.prompt import prompt_of
from spangate._records import ABSENT

Stamps: TypeAlias = Mapping[str, str | float]
"""What is written on a generation span, by key."""

Source: TypeAlias = Literal["start", "explicit", "hook", "wire", "attributes"]
"""Where the request is known from, best first: attributes at the start of the span, the program's own words, the
completion hook, the body that was sent, the attributes at the end."""


def fingerprint(request: Request, *, source: Source, model_from_config: str | None = None) -> dict[str, str | float]:
    """Return the attributes that carry the identity of ``request``, for its generation span.

    Args:
        request: What was asked.
        source: Where it is known from.
        model_from_config: The model that is pinned where the request names none. It is declared, not observed, and
            stamped so (``fingerprint.model_source``).

    Returns:
        ``fingerprint.source`` and ``fingerprint.missing_model`` always, the others as far as they are known:
        ``gen_ai.request.temperature`` as a float (the tuple hashes its text), everything else as text.
    """
    stamps: dict[str, str | float] = {keys.FINGERPRINT_SOURCE: source}
    tools = "null" if request.tools is ABSENT else _canonical(request.tools)
    if tools is not None and tools != "null":
        stamps[keys.TOOL_SCHEMA_HASH] = text_hash(tools)
    prompt = prompt_of(request)
    if prompt is not None:
        system, user = _canonical(prompt["system"]), _canonical(prompt["user"])
        if system is not None and user is not None:
            stamps[keys.PROMPT_TEXT_HASH] = text_hash(f'{{"system":{system},"user":{user}}}')
            if tools is not None:
                stamps[keys.PROMPT_HASH] = text_hash(f'{{"system":{system},"tools":{tools},"user":{user}}}')
        if keys.PROMPT_HASH not in stamps:
            stamps[keys.FINGERPRINT_GAP] = f"{source}: {_why_not([request.tools, *prompt.values()])}"
    model = named_model(request.model)
    if model is None and model_from_config:
        model = model_from_config
        stamps[keys.FINGERPRINT_MODEL_SOURCE] = "config"
    _put(stamps, keys.REQUEST_MODEL, model)
    stamps[keys.FINGERPRINT_MISSING_MODEL] = "true" if model is None else "false"
    _put(stamps, keys.REQUEST_TEMPERATURE, temperature_of(request.temperature))
    params = {name: value for name, value in request.params.items() if value is not ABSENT}
    if params:
        _put(stamps, keys.FINGERPRINT_PARAMS_HASH, _hash(params))
    _put(stamps, keys.FINGERPRINT_TUPLE, tuple_of(stamps))
    return stamps


def _put(stamps: dict[str, str | float], key: str, value: str | float | None) -> None:
    if value is not None:
        stamps[key] = value


_FACTS = (
    keys.PROMPT_HASH,
    keys.TOOL_SCHEMA_HASH,
    keys.FINGERPRINT_MISSING_MODEL,
    keys.REQUEST_MODEL,
    keys.REQUEST_TEMPERATURE,
)


def tuple_of(stamps: Stamps) -> str | None:
    """Hash the facts as text; without a prompt they are nobody's identity."""
    if keys.PROMPT_HASH not in stamps:
        return None
    return _hash({key: str(stamps[key]) for key in _FACTS if key in stamps})


def _hash(value: Any) -> str | None:
    """Hash a value, None if it is not JSON."""
    written = _canonical(value)
    return None if written is None else text_hash(written)


def _canonical(value: Any) -> str | None:
    """Write a value as canonical JSON, None if it is not JSON."""
    try:
        return canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _why_not(values: Iterable[Any]) -> str:
    """Say why one of ``values`` is not JSON."""
    try:
        canonical_json([value for value in values if value is not ABSENT])
    except RecursionError:
        return "it is nested too deeply"
    except ValueError:
        return "it holds NaN, infinity or itself, which JSON does not have"
    except TypeError:
        pass
    return "it holds what JSON does not have, such as bytes, a set or an object"


def named_model(value: Any) -> str | None:
    """Return the name of the model, None where it is no text that could be written anywhere."""
    if not isinstance(value, str) or not value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def temperature_of(value: Any) -> float | None:
    """Return the temperature as a float; some instrumentations record it as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 is the same temperature
