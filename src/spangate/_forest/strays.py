"""Whether a parentless tree is a piece that a run has lost, or something of its own (design section 3, rule 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run


def belongs(candidate: Sequence[Span], run: Run) -> bool:
    """Say whether there is evidence that ``candidate`` is a stray of ``run``.

    A tool span is evidence, since tools run for somebody. Else the run must cite its call id, share a response id with
    it, or hold a generation that encloses it with the same usage (a second instrumentation of the same call).
    """
    if any(span.role == "tool" for span in candidate):
        return True
    return _is_cited(candidate, run) or _shares_response(candidate, run) or _is_enclosed(candidate, run)


def call_ids_of(programs: Iterable[Span]) -> set[str | None]:
    """Return the ids of the calls that programs were started for."""
    return {dialect_of(span).tool_call(span).call_id for span in programs if span.role == "process"} - {None}


def _is_cited(candidate: Iterable[Span], run: Run) -> bool:
    call_ids = call_ids_of(candidate)
    return bool(call_ids) and any(
        call.call_id in call_ids
        for generation in run.of_role("generation")
        for call in dialect_of(generation).turn(generation).received or ()
    )


def _shares_response(candidate: Iterable[Span], run: Run) -> bool:
    ids = {dialect_of(span).response_id(span) for span in candidate if span.role == "generation"} - {None}
    return bool(ids) and any(dialect_of(span).response_id(span) in ids for span in run.of_role("generation"))


def _is_enclosed(candidate: Iterable[Span], run: Run) -> bool:
    return any(_encloses(outer, inner) for inner in candidate for outer in run.of_role("generation"))


def _encloses(outer: Span, inner: Span) -> bool:
    if inner.role != "generation" or inner.end_ns is None or outer.end_ns is None:
        return False
    if not outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns:
        return False
    mine, theirs = dialect_of(inner).usage(inner), dialect_of(outer).usage(outer)
    return bool(mine.input) and (mine.input, mine.output) == (theirs.input, theirs.output)
