"""Halt: a loop has a bound, closes each iteration before the next, and says for what reason it stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spangate._dialects import dialect_of
from spangate._dialects.native import HALT_REASONS, native
from spangate._loops import Loop, gaps, is_ours, loops_of
from spangate._records import Finding, Span, not_evaluable
from spangate._run import Run
from spangate._settings import check_ceiling
from spangate._units import duration, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Finds loops that did not halt as they should: without a reason, with something open, or past their bound.

    Loops of :func:`spangate.run` are judged. A framework's record iterations at most, and not why they ended: what a
    model gave as the reason for its last words says nothing of the loop, so they are not evaluable unless a policy
    requires a halt. Each agent inside an agent has a loop of its own.

    Attributes:
        require_halt: A run without a loop of ours, or without any, is refused as ``halt.missing``.
        max_iters: How many iterations a loop may take, a framework's too, whatever it declares; None for what it
            declares.

    Raises:
        ValueError: a bound that is no whole number, or is negative.
    """

    require_halt: bool = False
    max_iters: int | None = None

    def __post_init__(self) -> None:
        check_ceiling("max_iters", self.max_iters)

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield what is wrong with each loop, in the order in which they began."""
        loops = run.remember(loops_of)
        ours = [loop for loop in loops if loop.is_ours]
        for loop in loops:
            yield from self._over_budget(loop)
            if loop.is_ours or self.require_halt:
                yield from _judged(loop)
        if self.require_halt and not loops:
            yield Finding("halt.missing", run.root, "no loop of this run says for what reason it halted")
        if not ours and not self.require_halt:
            yield from self._unevaluated(run, loops)

    def _over_budget(self, loop: Loop) -> Iterator[Finding]:
        bounds = [bound for bound in (loop.max_iters if loop.is_ours else None, self.max_iters) if bound is not None]
        if bounds and len(loop.iterations) > min(bounds):
            what = f"{len(loop.iterations)} iterations > {min(bounds)}"
            yield Finding("halt.over_budget", loop.iterations[min(bounds)], what)

    def _unevaluated(self, run: Run, loops: Sequence[Loop]) -> Iterator[Finding]:
        count = len(run.of_role("iteration"))
        why = "no span says what an iteration is"
        if count:
            why = f"its {count} iteration(s) are a framework's, which does not say why it stopped"
        is_bounded = bool(loops) and self.max_iters is not None
        yield not_evaluable("halt.missing" if is_bounded else "halt.not_evaluable", why)


def _judged(loop: Loop) -> Iterator[Finding]:
    yield from _reasons(loop)
    yield from _left_open(loop)
    for span, what in gaps(loop):
        yield Finding("halt.iteration_gap", span, what)
    yield from _drifted(loop)


def _reasons(loop: Loop) -> Iterator[Finding]:
    if not loop.halts:
        what = f"{len(loop.iterations)} iteration(s), and no halt says why there are no more"
        yield Finding("halt.missing", loop.head, what)
    for number, halt in enumerate(loop.halts):
        reason = native(halt.attributes, "halt_reason")
        if not (isinstance(reason, str) and reason in HALT_REASONS):
            yield Finding("halt.unknown_reason", halt, f"'{shown(str(reason))}' is no reason to halt")
        elif number:
            yield Finding("halt.unknown_reason", halt, "halts again what has halted: one reason is not the reason")


def _left_open(loop: Loop) -> Iterator[Finding]:
    for span, after in pairwise([*loop.iterations, None]):
        if span is None:
            continue
        if span.end_ns is None:
            yield Finding("halt.open_iteration", span, "was never closed")
        elif after is not None and after.start_ns < span.end_ns and is_ours(after):
            early = duration(span.end_ns - after.start_ns)
            yield Finding("halt.open_iteration", span, f"was closed {early} after the next one had begun")
    for halt in loop.halts:
        late = [span for span in loop.iterations if (span.end_ns or 0) > halt.start_ns]
        if native(halt.attributes, "span_still_open") is True:
            yield Finding("halt.open_iteration", halt, "a span of the loop was still open when it halted")
        elif late:
            yield Finding("halt.open_iteration", late[0], "was closed after the loop had halted")


def _drifted(loop: Loop) -> Iterator[Finding]:
    """Find tools that were offered with another schema than at their first call."""
    first: dict[str, tuple[str, Span]] = {}
    for span in loop.tools:
        schema = native(span.attributes, "schema_hash")
        name = dialect_of(span).tool_call(span).name or span.name
        if not isinstance(schema, str):
            continue
        known, _ = first.setdefault(name, (schema, span))
        if known != schema:
            yield Finding("halt.schema_drift", span, f"'{shown(name)}' has schema {schema}, and had {known} before")
