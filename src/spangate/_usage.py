"""What a run used: its tokens and the bytes its tools returned, and everything that is doubtful about these sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from spangate._calls import Call, calls_of
from spangate._dialects import dialect_of
from spangate._records import Finding, Span
from spangate._results import Invocation, invocations_of
from spangate._rollups import wrong_rollups
from spangate._run import Run

Number = TypeVar("Number", int, float)

NO_CALLS: Final = "no generation span says what a model used"
_UNSEEN_CALLS: Final = {
    "forest.parent_unsampled": "a parent was not sampled, so calls may be missing",
    "forest.stray_generation": "a generation that may belong to the run stands alone",
}


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
class Usage:
    """What a run used.

    ``unseen`` says why there may be more model calls than are seen here, if so. ``problems`` are the findings about the
    counts themselves, whatever ceilings are set.
    """

    input: Sum[int]
    output: Sum[int]
    payload: Sum[int]
    calls: Sequence[Call]
    invocations: Sequence[Invocation]
    unseen: str
    problems: Sequence[Finding]

    @property
    def input_tokens(self) -> int | None:
        """Input tokens of all model calls, None where they cannot be evaluated."""
        return self.input.total

    @property
    def output_tokens(self) -> int | None:
        """Output tokens of all model calls, None where they cannot be evaluated."""
        return self.output.total

    @property
    def tool_payload_bytes(self) -> int | None:
        """Bytes that the tools returned, None where they cannot be evaluated."""
        return self.payload.total


def count(run: Run) -> Usage:
    """Return what ``run`` used. Counted once however often it is asked for.

    Tokens are summed over the model calls, each once (:func:`spangate._calls.calls_of`), bytes over the invocations of
    tools. A call or tool that failed may have nothing to say: the sum is then a floor, not exact.
    """
    return run.remember(_count)


def _count(run: Run) -> Usage:
    calls, invocations = calls_of(run), invocations_of(run)
    unseen = next((reason for note in run.notes if (reason := _UNSEEN_CALLS.get(note.code))), "")
    problems = [Finding("budget.lower_bound", None, unseen)] if unseen else []
    for call in calls:
        if len(call.sightings) > 1 or not all(call.tokens) or call.sightings[0].reading.flaws:
            problems += _doubts(call)
    problems += wrong_rollups(run, calls)
    problems += (Finding(flaw.code, one.span, flaw.detail) for one in invocations for flaw in one.flaws)
    return Usage(
        input=token_sum(calls, 0, unseen),
        output=token_sum(calls, 1, unseen),
        payload=payload_sum(invocations),
        calls=calls,
        invocations=invocations,
        unseen=unseen,
        problems=problems,
    )


def token_sum(calls: Sequence[Call], side: int, gap: str = "") -> Sum[int]:
    """Add up one side (0 input, 1 output) of ``calls``, of which ``gap`` may say that they are not all."""
    known, silent = 0, []
    for call in calls:
        part = call.tokens[side]
        if part is None:
            silent.append(call)
        else:
            known += part
    if silent:
        gap = f"{len(silent)} of {len(calls)} model calls do not say what they used"
    missing = tuple(call.span for call in silent if not _has_spoken(call, side) and not _has_failed(call))
    return Sum(known, gap or ("" if calls else NO_CALLS), missing)


def payload_sum(invocations: Sequence[Invocation]) -> Sum[int]:
    """Add up the bytes that ``invocations`` returned."""
    known, silent = 0, []
    for one in invocations:
        if one.size is None:
            silent.append(one)
        else:
            known += one.size
    gap = "" if invocations else "no tool span says what it returned"
    if silent:
        gap = f"{len(silent)} of {len(invocations)} tool calls do not say what they returned"
    missing = tuple(one.span for one in silent if not one.flaws and dialect_of(one.span).outcome(one.span) == "ok")
    return Sum(known, gap, missing)


def _doubts(call: Call) -> Iterator[Finding]:
    """Yield what is doubtful about the counts of one call."""
    for seen in call.sightings:
        for flaw in seen.reading.flaws:
            yield Finding(flaw.code, seen.span, flaw.detail)
    yield from _repetitions(call)
    tokens = call.tokens
    if None in tokens:
        silent = any(count is None and not _has_spoken(call, side) for side, count in enumerate(tokens))
        if silent and _has_failed(call):
            yield Finding("budget.lower_bound", call.span, "failed and does not say what it used")
    if 0 in tokens and not any(tokens) and any(dialect_of(seen.span).answered(seen.span) for seen in call.sightings):
        yield Finding("budget.suspicious_zero", call.span, "says that its answer took 0 tokens")


def _repetitions(call: Call) -> Iterator[Finding]:
    """Say that several spans tell what one call used: other instrumentations, or the same one again."""
    spoken = [seen for seen in call.sightings if any(seen.reading.said)]
    places = {(seen.depth, seen.span.scope) for seen in spoken}
    if len(places) > 1:
        yield Finding("budget.double_instrumentation", call.span, f"{len(spoken)} spans count this call; counted once")
    if len(places) < len(spoken):
        yield Finding("budget.replayed_response", spoken[-1].span, "its response was counted already; counted once")


def _has_spoken(call: Call, side: int) -> bool:
    """Say whether any span of the call holds a value on this side, usable or not."""
    return any(seen.reading.said[side] for seen in call.sightings)


def _has_failed(call: Call) -> bool:
    """Say whether the call came to a bad or an early end, after which nobody can be expected to count."""
    return any(dialect_of(seen.span).outcome(seen.span) != "ok" for seen in call.sightings)
