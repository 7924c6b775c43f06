"""Sums over model calls and over tools: what is known for certain, and what is missing from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run
from spangate._usage.calls import Call, Calls, single_call
from spangate._usage.results import Invocations
from spangate._usage.tokens import Flaw, plainly_counted

Number = TypeVar("Number", int, float)

NO_CALLS: Final = "no generation span says what a model used"
NO_TOOLS: Final = "no tool span says what it returned"


@dataclass(frozen=True, slots=True)
class Sum(Generic[Number]):
    """A sum over a run. ``known`` is certain; it is all there is only if there is no ``gap``, which says what is not.

    ``missing`` are the spans that should have said their part and did not.
    """

    known: Number
    gap: str = ""
    missing: tuple[Span, ...] = ()

    @property
    def total(self) -> Number | None:
        """The sum, None where it cannot be evaluated."""
        return None if self.gap else self.known


@dataclass(frozen=True, slots=True)
class TokenTally:
    """What ``number`` calls used, input and output, as far as they say it, and those that leave a question about it."""

    number: int
    known: tuple[int, int]
    doubtful: Sequence[Call]


@dataclass(frozen=True, slots=True)
class ByteTally:
    """What ``number`` tools returned in bytes, as far as they say it; those that do not, and those that say it ill."""

    number: int
    known: int
    silent: Sequence[Span]
    flaws: Mapping[Span, Sequence[Flaw]]


def add_tokens(run: Run, calls: Calls) -> TokenTally:
    """Add up what ``calls`` of ``run`` used.

    A call that one span tells of in plain numbers above zero leaves no question.
    """
    asked = answered = 0
    found = list(calls.joined)
    for span in calls.single:
        given, got = plainly_counted(dialect_of(span).usage(span))
        if given and got:
            asked += given
            answered += got
        else:
            found.append(single_call(span))
    doubtful = run.walk(found)
    for call in doubtful:
        asked += call.tokens[0] or 0
        answered += call.tokens[1] or 0
    return TokenTally(len(calls), (asked, answered), doubtful)


def add_bytes(run: Run, invocations: Invocations) -> ByteTally:
    """Add up what ``invocations`` of ``run`` returned."""
    known = 0
    silent: list[Span] = []
    flawed: dict[Span, Sequence[Flaw]] = {}
    for span, size, flaws in invocations.sizes():
        if size is None:
            silent.append(span)
        else:
            known += size
        if flaws:
            flawed[span] = flaws
    return ByteTally(len(invocations), known, run.walk(silent), flawed)


def token_sum(tally: TokenTally, side: int, gap: str = "") -> Sum[int]:
    """Return one side (0 input, 1 output) of what was added up, of which ``gap`` may say that it is not all."""
    silent = [call for call in tally.doubtful if call.tokens[side] is None]
    if silent:
        gap = f"{len(silent)} of {tally.number} model calls do not say what they used"
    missing = tuple(call.span for call in silent if not call.has_spoken(side) and not call.has_failed())
    return Sum(tally.known[side], gap or ("" if tally.number else NO_CALLS), missing)


def byte_sum(tally: ByteTally) -> Sum[int]:
    """Return the bytes that were added up."""
    gap = "" if tally.number else NO_TOOLS
    if tally.silent:
        gap = f"{len(tally.silent)} of {tally.number} tool calls do not say what they returned"
    silent = (span for span in tally.silent if span not in tally.flaws)
    return Sum(tally.known, gap, tuple(span for span in silent if dialect_of(span).outcome(span) == "ok"))
