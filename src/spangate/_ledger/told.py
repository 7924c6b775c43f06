"""What a run that is over tells a ledger: a row for each tool and program in it, and what became of guarded calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from spangate import _keys as keys
from spangate._attempts import recorded_call
from spangate._dialects import dialect_of
from spangate._dialects._outcome import names_of
from spangate._dialects._values import first, text
from spangate._dialects.process import EXIT_CODE
from spangate._exits import expected_outcome
from spangate._ledger.book import Terms
from spangate._ledger.changed import changes_of
from spangate._ledger.errors import RetryBlocked
from spangate._ledger.rows import Attempt
from spangate._lineage import nearest
from spangate._records import ABSENT, Exit, Outcome, Span
from spangate._run import Run

Place: TypeAlias = tuple[int, int]
"""Trace id and span id."""
_SESSION: Final = ("session.id", "gen_ai.conversation.id")


@dataclass(frozen=True, slots=True)
class Told:
    """``fresh`` are rows to be written, ``sighted`` rows of guards of whose span it is known what became of it."""

    fresh: Sequence[Attempt]
    sighted: Sequence[Attempt]


def told(run: Run, terms: Terms, guards: Sequence[Attempt], begun_inside: Mapping[Place, Attempt]) -> Told:
    """Return what ``run`` tells.

    A tool span is the call of a guard if the guard was asked inside of it, or it is the topmost one that began in the
    guard's block; but of several there only those that have its name or its arguments.

    Args:
        run: The run.
        terms: What counts in the ledger.
        guards: The rows in the run's traces of whose spans nobody knows yet what became of them.
        begun_inside: By the spans that began in the block of a guard, directly below its own span, that guard's row.
    """
    found = dict(_attempts(run, terms))
    owners = _owners(run, found, guards, begun_inside)
    fresh = [attempt for span, attempt in found.items() if span not in owners]
    sighted: dict[int, Attempt] = {}
    for span, guard in owners.items():
        own = found[span]
        seen = replace(guard, sighting="ended", trace_id=own.trace_id, span_id=own.span_id, diff_stat=own.diff_stat)
        sighted.setdefault(guard.id, seen)
    for guard in guards:
        holder = run.by_id.get(int(guard.trace_id, 16), {}).get(int(guard.span_id, 16))
        if holder is not None and guard.id not in sighted:
            sighted[guard.id] = replace(guard, sighting="missing" if holder.end_ns is None else "ended")
    return Told(fresh, [*sighted.values()])


def _attempts(run: Run, terms: Terms) -> Iterator[tuple[Span, Attempt]]:
    exits = {place: row for row in run.exits or () for place in ((row.trace_id, row.span_id), row.invocation_id)}
    changes = changes_of(run)
    session = text(first(run.root.attributes, _SESSION)) if terms.session is None else terms.session
    for span in chain(run.of_role("tool"), run.of_role("process")):
        if span.end_ns is not None:
            call = recorded_call(span, terms.redaction)
            outcome, code = _end_of(span, exits)
            yield (
                span,
                Attempt(
                    id=0,
                    fingerprint=call.fingerprint,
                    tool=call.tool,
                    version=call.version,
                    tree_before=None,
                    tree_after=None,
                    outcome=outcome,
                    exit_code=code,
                    diff_stat=changes.get(span),
                    session=session or "",
                    repository=terms.repository,
                    trace_id=span.hex_trace_id,
                    span_id=span.hex_id,
                    sighting="ended",
                    origin="span",
                    started_ns=span.start_ns,
                    ended_ns=span.end_ns,
                ),
            )


def _end_of(span: Span, exits: Mapping[Any, Exit]) -> tuple[Outcome, int | None]:
    """Say how a call ended: as the operating system told us if it did, whatever its span says."""
    outcome = dialect_of(span).outcome(span)
    if outcome == "error" and _is_blocked(span):
        outcome = "control_flow"
    invocation_id = span.attributes.get(keys.INVOCATION_ID)
    row = exits.get((span.trace_id, span.span_id)) or exits.get(invocation_id)
    if row is None:
        code = span.attributes.get(EXIT_CODE, ABSENT)
        return outcome, code if isinstance(code, int) and not isinstance(code, bool) else None
    expected = expected_outcome(row.code, timed_out=row.timed_out)
    is_cancelled = expected == "error" and outcome == "cancelled"  # which the run knows, and the system does not
    return "cancelled" if is_cancelled else expected, row.code


def _is_blocked(span: Span) -> bool:
    """Say whether a veto ended a span. It must not count as a failure: each veto would put off the end of the next."""
    return any(name.rpartition(".")[2] == RetryBlocked.__name__ for name in names_of(span))


def _owners(
    run: Run, found: Mapping[Span, Attempt], guards: Sequence[Attempt], begun_inside: Mapping[Place, Attempt]
) -> dict[Span, Attempt]:
    """Return for each tool span that is the call of a guard that guard's row."""
    owners: dict[Span, Attempt] = {}
    by_span: dict[str, list[Attempt]] = {}
    for guard in guards:
        by_span.setdefault(guard.trace_id + guard.span_id, []).append(guard)
    tools = [span for span in found if span.role == "tool"]
    for span in tools if by_span else ():
        own = found[span]
        same = [guard for guard in by_span.get(own.trace_id + own.span_id, ()) if _is_same(own, guard)]
        if same:
            owners[span] = same[0]
    taken = {guard.id for guard in owners.values()}
    for guard, spans in _topmost(run, tools, begun_inside) if begun_inside else ():
        if guard.id not in taken:
            meant = spans if len(spans) == 1 else [span for span in spans if _is_same(found[span], guard)]
            owners.update(dict.fromkeys(meant, guard))
    return owners


def _is_same(own: Attempt, guard: Attempt) -> bool:
    has_arguments = own.fingerprint is not None
    return own.tool == guard.tool or (has_arguments and own.fingerprint == guard.fingerprint)


def _topmost(
    run: Run, tools: Sequence[Span], begun_inside: Mapping[Place, Attempt]
) -> Iterator[tuple[Attempt, list[Span]]]:
    """Yield each guard with the tool spans in its block above which there is none in its block."""
    guard_of = _guard_of(run, begun_inside)
    tool_above = nearest(run, lambda span: span.role == "tool")
    found: dict[int, tuple[Attempt, list[Span]]] = {}
    for span in run.walk(tools):
        guard, above = guard_of(span), tool_above(span)
        if guard is not None and (above is None or guard_of(above) is not guard):
            found.setdefault(guard.id, (guard, []))[1].append(span)
    yield from found.values()


def _guard_of(run: Run, begun_inside: Mapping[Place, Attempt]) -> Callable[[Span], Attempt | None]:
    top = nearest(run, lambda span: (span.trace_id, span.span_id) in begun_inside)

    def guard_of(span: Span) -> Attempt | None:
        own = begun_inside.get((span.trace_id, span.span_id))
        if own is not None:
            return own
        above = top(span)
        return None if above is None else begun_inside[above.trace_id, above.span_id]

    return guard_of
