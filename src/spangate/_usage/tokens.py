"""What one span says about its tokens, made into whole numbers where it is plain what is meant, else refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from spangate._dialects import dialect_of
from spangate._dialects._base import NO_USAGE, TokenCounts
from spangate._records import ABSENT, Span

Tokens: TypeAlias = tuple[int | None, int | None]
"""Input and output tokens; None on a side of which nothing usable is known."""

MAX_COUNT: Final = 1 << 53
"""The largest count that is believed: beyond it a number, its text and its float no longer agree."""

_WHOLE_TEXT: Final = re.compile(r"([+-]?[0-9]{1,20})(?:\.0*)?")
_NONFINITE_TEXT: Final = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_SHOWN: Final = 20


class Flaw(NamedTuple):
    """What is wrong with a recorded count: the finding's code, and words for a person."""

    code: str
    detail: str


@dataclass(slots=True, eq=False)
class Reading:
    """The token counts of one span.

    ``recorded`` are the counts as they stand there, ``counted`` the same with what the vendor counts beside them.
    ``said`` tells which sides hold any value, usable or not.
    """

    recorded: Tokens
    counted: Tokens
    said: tuple[bool, bool] = (True, True)
    flaws: Sequence[Flaw] = ()


UNSAID: Final = Reading((None, None), (None, None), (False, False))


def reading_of(span: Span) -> Reading:
    """Return what ``span`` says."""
    return read(dialect_of(span).usage(span))


def read(counts: TokenCounts) -> Reading:
    """Make sense of the counts on one span.

    Cache counters that add up to more than the input must lie outside it and are added; smaller ones lie inside.
    Reasoning is added to the output only where the recorded total proves that it lies outside.
    """
    if counts is NO_USAGE:
        return UNSAID  # what most spans say that are no calls
    asked, answered = counts.input, counts.output
    plain = plainly_counted(counts)
    if plain[0] is not None:
        return Reading((asked, answered), plain)
    said = not _is_absent(asked), not _is_absent(answered)
    if said == UNSAID.said:
        return UNSAID
    flaws: list[Flaw] = []
    asked, answered = _side("input", asked, flaws), _side("output", answered, flaws)
    recorded = asked, answered
    return Reading(recorded, recorded if asked is None else _with_parts(counts, asked, answered), said, flaws)


def plainly_counted(counts: TokenCounts) -> Tokens:
    """Return what counts come to that are whole numbers on both sides; if they are not, nothing is known of either."""
    asked, answered = counts.input, counts.output
    if type(asked) is int and type(answered) is int and 0 <= asked <= MAX_COUNT and 0 <= answered <= MAX_COUNT:
        alone = counts.cached is counts.cache_written is counts.reasoning is ABSENT
        return (asked, answered) if alone else _with_parts(counts, asked, answered)
    return None, None


def _with_parts(counts: TokenCounts, asked: int, answered: int | None) -> Tokens:
    """Add what the vendor counts beside the input and the output, as far as arithmetic proves it."""
    total_asked = asked
    if counts.cached is not ABSENT or counts.cache_written is not ABSENT:
        cache = _part(counts.cached) + _part(counts.cache_written)
        if cache > asked:
            total_asked += cache
    if counts.total is ABSENT or counts.reasoning is ABSENT or answered is None:
        return total_asked, answered
    reasoning = _part(counts.reasoning)
    is_outside = _part(counts.total) - answered - reasoning in (asked, total_asked)
    return total_asked, answered + reasoning if is_outside else answered


def whole_number(value: Any) -> tuple[int | None, str | None]:
    """Return the number that ``value`` plainly means, and how it fails to be one.

    The second is None for a whole number, ``coerced`` for one in the shape of text or a float, else ``negative``,
    ``nonfinite`` or ``invalid``, and the number is then None. A truth value is no number.
    """
    if type(value) is int:
        return _sized(value, None)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None, "nonfinite"
        return _sized(int(value), "coerced") if value.is_integer() else (None, "negative" if value < 0 else "invalid")
    if isinstance(value, str):
        text = value[: 4 * _SHOWN].strip()
        if found := _WHOLE_TEXT.fullmatch(text):
            return _sized(int(found[1]), "coerced")
        return None, "nonfinite" if _NONFINITE_TEXT.fullmatch(text) else "invalid"
    return None, "invalid"


def flaw_of(what: str, value: Any, kind: str, number: int | None) -> Flaw:
    """Put into words that ``value``, recorded as ``what``, is no plain number."""
    if number is not None:
        return Flaw(f"budget.usage_{kind}", f"{what}: {_shown(value)} taken as {number}")
    return Flaw(f"budget.usage_{kind}", f"{what}: {_shown(value)} is no count")


def _side(side: str, value: Any, flaws: list[Flaw]) -> int | None:
    if _is_absent(value):
        return None
    number, kind = whole_number(value)
    if kind is not None:
        flaws.append(flaw_of(f"{side} tokens", value, kind, number))
    return number


def _part(value: Any) -> int:
    """Return a count that only explains another one: unusable, it explains nothing."""
    return 0 if value is ABSENT else whole_number(value)[0] or 0


def _sized(number: int, kind: str | None) -> tuple[int | None, str | None]:
    if number < 0:
        return None, "negative"
    return (number, kind) if number <= MAX_COUNT else (None, "invalid")


def _is_absent(value: Any) -> bool:
    return value is ABSENT or value is None


def _shown(value: Any) -> str:
    """Return a foreign value in a few clean characters."""
    if isinstance(value, str):
        return ascii(value[:_SHOWN])[: 2 * _SHOWN]
    if isinstance(value, float | bool) or (isinstance(value, int) and abs(value) <= MAX_COUNT):
        return repr(value)
    return "an enormous number" if isinstance(value, int) else f"a {type(value).__name__}"
