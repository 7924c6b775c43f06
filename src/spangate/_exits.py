"""Exit rows joined with the spans that claim a program: one to one on the invocation id, and each tells the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from spangate import _keys as keys
from spangate._dialects import dialect_of
from spangate._dialects.process import EXIT_CODE, PID
from spangate._records import Exit, Outcome, Span
from spangate._run import Run

Item = TypeVar("Item")
_AGREES: Final[Mapping[Outcome, frozenset[Outcome]]] = {
    "ok": frozenset({"ok"}),
    "timeout": frozenset({"timeout"}),
    "error": frozenset({"error", "cancelled"}),  # a run that ends a program itself cancels it
}
"""What a span may say of a program, by what is expected."""


@dataclass(frozen=True, slots=True, eq=False)
class Mismatch:
    """A span that tells its program's end otherwise than the operating system does."""

    span: Span
    code: int
    expected: Outcome
    told: Outcome


@dataclass(frozen=True, slots=True, eq=False)
class ExitReport:
    """How the programs that ran and the spans that claim them fit together.

    ``exit_count`` counts programs that ended, ``error_count`` those of them that did not end with 0, ``close_count``
    the closed spans that claim one. ``leaks`` are exits that no span claims, ``orphans`` spans whose program nobody saw
    end, ``duplicates`` invocation ids that several exits or several spans have. ``is_watched`` is False for a
    recording: exits are then taken from the spans themselves, so that none can be missing.
    """

    exit_count: int
    error_count: int
    close_count: int
    leaks: Sequence[Exit]
    orphans: Sequence[Span]
    status_mismatches: Sequence[Mismatch]
    duplicates: Sequence[str]
    is_watched: bool

    @property
    def join_ok(self) -> bool:
        """Whether every exit has its span, every span its exit, and both tell the same."""
        return not (self.leaks or self.orphans or self.status_mismatches or self.duplicates)

    def as_dict(self) -> dict[str, Any]:
        """The report as numbers, for JSON."""
        return {
            "exit_count": self.exit_count,
            "close_count": self.close_count,
            "leaks": len(self.leaks),
            "orphans": len(self.orphans),
            "status_mismatches": len(self.status_mismatches),
            "duplicates": len(self.duplicates),
            "join_ok": self.join_ok,
        }


def expected_outcome(code: int, *, timed_out: bool) -> Outcome:
    """Return what a span has to say of a program that ended so: 0 is ok, time that was up is its own status."""
    if timed_out:
        return "timeout"
    return "ok" if code == 0 else "error"


def exit_report(run: Run) -> ExitReport:
    """Join the exits of a run with its closed spans of programs."""
    claims = [span for span in run.of_role("process") if span.end_ns is not None and _claims_program(span)]
    rows = _rows(run, claims)
    exits = _by_id((row.invocation_id, row) for row in rows)
    spans = _by_id((_invocation_id(span), span) for span in claims)
    joined = [(exits[key][0], spans[key][0]) for key in spans if len(spans[key]) == 1 == len(exits.get(key, ()))]
    return ExitReport(
        exit_count=len(rows),
        error_count=sum(1 for row in rows if row.code != 0),
        close_count=len(claims),
        leaks=[exits[key][0] for key in exits if key not in spans],
        orphans=[spans[key][0] for key in spans if key not in exits],
        status_mismatches=[wrong for row, span in joined if (wrong := _mismatch(row, span)) is not None],
        duplicates=[key for key in {**exits, **spans} if len(exits.get(key, ())) > 1 or len(spans.get(key, ())) > 1],
        is_watched=run.exits is not None,
    )


def _claims_program(span: Span) -> bool:
    """Say whether a span claims that a program ran: one that failed before there was a process says that none did."""
    return PID in span.attributes or EXIT_CODE in span.attributes or dialect_of(span).outcome(span) == "ok"


def _rows(run: Run, claims: Sequence[Span]) -> Sequence[Exit]:
    """Return the exits that were watched, and for spans of another process, or of another's making, their own word."""
    if run.exits is None:
        return [row for span in claims if (row := _own_word(span)) is not None]
    elsewhere = (span for span in claims if keys.INVOCATION_ID not in span.attributes or not _is_here(run, span))
    return [*run.exits, *(row for span in elsewhere if (row := _own_word(span)) is not None)]


def _is_here(run: Run, span: Span) -> bool:
    if span.sender_id is not None:
        return False
    here = run.root.resource
    return span.resource is here or span.resource == here


def _own_word(span: Span) -> Exit | None:
    """Return the exit that a span tells of itself, None if it tells none."""
    code = span.attributes.get(EXIT_CODE)
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    timed_out = dialect_of(span).outcome(span) == "timeout"  # nobody else knows
    return Exit(_invocation_id(span), code, timed_out, span.end_ns or 0, span.trace_id, span.span_id)


def _invocation_id(span: Span) -> str:
    """Return the id that a span joins by; one that was given none is joined with its own word alone."""
    value = span.attributes.get(keys.INVOCATION_ID)
    return value if isinstance(value, str) else f"{span.hex_trace_id}-{span.hex_id}"


def _by_id(pairs: Iterable[tuple[str, Item]]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def _mismatch(row: Exit, span: Span) -> Mismatch | None:
    expected = expected_outcome(row.code, timed_out=row.timed_out)
    told = dialect_of(span).outcome(span)
    agrees = told in _AGREES[expected] and span.attributes.get(EXIT_CODE, row.code) == row.code
    return None if agrees else Mismatch(span, row.code, expected, told)
