"""Whether two runs may be compared at all: by what was asked of the model first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spangate import _keys as keys
from spangate._dialects import dialect_of
from spangate._fingerprint import Stamps, fingerprint
from spangate._records import Span
from spangate._run import Run


@dataclass(frozen=True, slots=True)
class Pair:
    """Two model calls."""

    a: Span | None
    b: Span | None
    first: bool
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs asked."""

    pairs: tuple[Pair, ...]
    joined_by: Literal["generation_id", "position"]
    reasons: tuple[str, ...]
    comparable: bool


def compare(a: Run, b: Run) -> Comparison:
    """Compare the first requests of two runs."""
    ours, theirs = a.of_role("generation"), b.of_role("generation")
    if not ours or not theirs:
        return Comparison((), "position", ("no_generations",), comparable=False)
    before, after = _stamps(ours[0]), _stamps(theirs[0])
    reasons = [
        reason
        for stamps in (before, after)
        for reason, lacks in (
            ("missing_prompt", keys.PROMPT_HASH not in stamps),
            ("missing_model", stamps[keys.FINGERPRINT_MISSING_MODEL] == "true"),
        )
        if lacks
    ]
    for key, reason in (
        (keys.PROMPT_TEXT_HASH, "prompt"),
        (keys.TOOL_SCHEMA_HASH, "tool_schema"),
        (keys.REQUEST_MODEL, "model"),
        (keys.REQUEST_TEMPERATURE, "decoding"),
        (keys.FINGERPRINT_PARAMS_HASH, "decoding"),
    ):
        if before.get(key) != after.get(key):
            reasons.append(reason)
    return Comparison((), "position", tuple(dict.fromkeys(reasons)), comparable=not reasons)


def _stamps(span: Span) -> Stamps:
    if keys.FINGERPRINT_SOURCE in span.attributes:
        return span.attributes
    return fingerprint(dialect_of(span).request(span), source="attributes")
