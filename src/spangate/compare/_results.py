"""What two model calls that stand for each other have in common, fact by fact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from spangate import _keys as keys
from spangate.compare._requests import Asked, Request

COMPARED: Final = (
    keys.PROMPT_TEXT_HASH,
    keys.TOOL_SCHEMA_HASH,
    keys.REQUEST_MODEL,
    keys.REQUEST_TEMPERATURE,
    keys.FINGERPRINT_PARAMS_HASH,
)
"""``prompt.hash`` moves with the tools: the text alone and the tools alone say which of the two it was."""
_HASHED: Final = frozenset({keys.PROMPT_TEXT_HASH, keys.TOOL_SCHEMA_HASH, keys.FINGERPRINT_PARAMS_HASH})


def results_of(before: Request | None, after: Request | None) -> tuple[str, ...]:
    """Compare two calls: ``ok`` alone, or what is missing, ``other_source``, and ``mismatch:<key>`` for what differs.

    Of calls that several spans recorded, those two are compared that know most, and that know it in one form.
    """
    if before is None or after is None:
        return ("count",)
    ours, theirs = before.seen[0], after.seen[0]
    if len(before.seen) > 1 or len(after.seen) > 1:
        ours, theirs = min(product(before.seen, after.seen), key=_distance)
    facts = ours.facts
    if facts == theirs.facts and ours.form == theirs.form and keys.PROMPT_HASH in facts and keys.REQUEST_MODEL in facts:
        return ("ok",)  # nearly always
    lacks = [
        lack
        for lack, key in (("missing_model", keys.REQUEST_MODEL), ("missing_prompt", keys.PROMPT_HASH))
        if key not in ours.facts or key not in theirs.facts
    ]
    return (*lacks, *_mismatches(ours, theirs)) or ("ok",)


def _distance(pair: tuple[Asked, Asked]) -> tuple[int, bool]:
    """Rank two tellings of one pair of calls: those that know most go first, then those of one form."""
    ours, theirs = pair
    unknown = sum(key not in one.facts for one in pair for key in (keys.PROMPT_HASH, keys.REQUEST_MODEL))
    return unknown, ours.form != theirs.form


def _mismatches(ours: Asked, theirs: Asked) -> Iterator[str]:
    is_one_form = ours.form == theirs.form
    has_prompts = keys.PROMPT_HASH in ours.facts and keys.PROMPT_HASH in theirs.facts
    other = [key for key in COMPARED if ours.facts.get(key) != theirs.facts.get(key)]
    if not has_prompts:
        other = [key for key in other if key in ours.facts and key in theirs.facts]
    if not is_one_form and any(key in _HASHED for key in other):
        yield "other_source"
    for key in other:
        is_known = key in ours.facts and key in theirs.facts
        if is_one_form or (is_known and key not in _HASHED):
            yield f"mismatch:{key}"
