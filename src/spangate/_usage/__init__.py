"""What a run used: its tokens and the bytes its tools returned, and everything that is doubtful about these sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spangate._dialects import dialect_of
from spangate._records import Finding
from spangate._run import Run
from spangate._usage.calls import Call, Calls, calls_of
from spangate._usage.results import Invocations, invocations_of
from spangate._usage.rollups import wrong_rollups
from spangate._usage.sums import Sum, add_bytes, add_tokens, byte_sum, token_sum

_UNSEEN_CALLS: Final = {
    "forest.parent_unsampled": "a parent was not sampled, so calls may be missing",
    "forest.stray_generation": "a generation that may belong to the run stands alone",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used.

    ``unseen`` says why there may be more model calls than are seen here, if so. ``problems`` are the findings about the
    counts themselves, whatever ceilings are set.
    """

    input: Sum[int]
    output: Sum[int]
    payload: Sum[int]
    calls: Calls
    invocations: Invocations
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

    Tokens are summed over the model calls, each once (:func:`spangate._usage.calls.calls_of`), bytes over the
    invocations of tools. A call or tool that failed may have nothing to say: the sum is then a floor, not exact.
    """
    return run.remember(_count)


def _count(run: Run) -> Usage:
    calls, invocations = calls_of(run), invocations_of(run)
    tokens, returned = add_tokens(run, calls), add_bytes(run, invocations)
    unseen = next((reason for note in run.notes if (reason := _UNSEEN_CALLS.get(note.code))), "")
    problems = [Finding("budget.lower_bound", None, unseen)] if unseen else []
    for call in tokens.doubtful:
        problems += _doubts(call)
    problems += wrong_rollups(run, calls)
    problems += (Finding(flaw.code, span, flaw.detail) for span, flaws in returned.flaws.items() for flaw in flaws)
    return Usage(
        input=token_sum(tokens, 0, unseen),
        output=token_sum(tokens, 1, unseen),
        payload=byte_sum(returned),
        calls=calls,
        invocations=invocations,
        unseen=unseen,
        problems=run.walk(problems),
    )


def _doubts(call: Call) -> Iterator[Finding]:
    """Yield what is doubtful about the counts of one call."""
    for seen in call.sightings:
        for flaw in seen.reading.flaws:
            yield Finding(flaw.code, seen.span, flaw.detail)
    yield from _repetitions(call)
    tokens = call.tokens
    if None in tokens:
        silent = any(count is None and not call.has_spoken(side) for side, count in enumerate(tokens))
        if silent and call.has_failed():
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
