"""Fingerprints from several sources on one span: which of them counts, and what is added to one that lacks something.

A better source is never overwritten by a worse one, a user's own attribute never at all. A source that does not know
the prompt says at most why (``fingerprint.gap``): it does not stand in the way of one that knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spangate import _keys as keys
from spangate._dialects._base import Request
from spangate._fingerprint import Stamps, named_model, temperature_of, tuple_of
from spangate._records import ABSENT

_TRUST: Final = ("start", "explicit", "hook", "wire", "attributes")
"""The sources, best first."""


def placed(attributes: Mapping[str, Any], stamps: Stamps) -> Mapping[str, Any]:
    """Return the attributes of a span with ``stamps`` on it, or as they are if a better source was there before."""
    if keys.PROMPT_HASH not in stamps:
        gap = stamps.get(keys.FINGERPRINT_GAP)
        has_more = gap is None or keys.PROMPT_HASH in attributes or keys.FINGERPRINT_GAP in attributes
        return attributes if has_more else {**attributes, keys.FINGERPRINT_GAP: gap}
    there = attributes.get(keys.FINGERPRINT_SOURCE)
    if there is None:
        return {**stamps, **attributes}
    if _rank(there) <= _rank(stamps[keys.FINGERPRINT_SOURCE]):
        return attributes
    return {**stamps, **{key: value for key, value in attributes.items() if key not in keys.FINGERPRINT}}


def is_better(source: str, attributes: Mapping[str, Any]) -> bool:
    """Say whether ``source`` is trusted more than what the attributes of a span hold already."""
    there = attributes.get(keys.FINGERPRINT_SOURCE)
    return there is None or _rank(source) < _rank(there)


def _rank(source: Any) -> int:
    return _TRUST.index(source) if source in _TRUST else len(_TRUST)


def lacks_something(stamps: Stamps) -> bool:
    """Say whether what a span records by its end may complete its stamps."""
    if stamps.get(keys.FINGERPRINT_MISSING_MODEL) == "true":
        return True
    return stamps.get(keys.FINGERPRINT_SOURCE) == "explicit" and keys.REQUEST_TEMPERATURE not in stamps


def completed(stamps: Mapping[str, Any], request: Request, model_from_config: str | None) -> dict[str, str | float]:
    """Return what changes where ``request`` names the model that stamps are without.

    The words of the program are completed with the temperature, too; the others know all of the request but what stands
    in its address, as some models do.

    Args:
        stamps: The stamps, or the attributes of the span that bears them.
        request: What the span itself has recorded.
        model_from_config: The model that is pinned where nobody names one.
    """
    changed: dict[str, str | float] = {}
    if stamps.get(keys.FINGERPRINT_MISSING_MODEL) == "true":
        model = named_model(request.model)
        if model is None and model_from_config:
            model = model_from_config
            changed[keys.FINGERPRINT_MODEL_SOURCE] = "config"
        if model is not None:
            changed[keys.REQUEST_MODEL] = model
            changed[keys.FINGERPRINT_MISSING_MODEL] = "false"
    temperature = temperature_of(stamps.get(keys.REQUEST_TEMPERATURE, ABSENT))
    if keys.REQUEST_TEMPERATURE not in stamps and stamps.get(keys.FINGERPRINT_SOURCE) == "explicit":
        temperature = temperature_of(request.temperature)
        if temperature is not None:
            changed[keys.REQUEST_TEMPERATURE] = temperature
    facts = {key: value for key, value in stamps.items() if key != keys.REQUEST_TEMPERATURE}
    if temperature is not None:
        facts[keys.REQUEST_TEMPERATURE] = temperature
    identity = tuple_of({**facts, **changed})
    if identity is not None:
        changed[keys.FINGERPRINT_TUPLE] = identity
    return changed
