"""The loops of a run: whose iterations they are, by what numbers, and for what reason each of them halted.

A loop belongs to the nearest agent above its iterations, so that an agent inside an agent's tool has a loop of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from spangate._dialects import dialect_of
from spangate._dialects.native import HALT, native
from spangate._dialects.strands import CYCLE_ID, PARENT_CYCLE_ID
from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run

_STEP: Final = re.compile(r"(?:Step|step|turn|iteration) (\d{1,9})")


@dataclass(slots=True, eq=False)
class Loop:
    """One loop. ``head`` is its agent's span, or the run's root where no agent is above it.

    ``iterations``, ``halts`` and ``tools`` stand in the order of their starts. ``is_ours`` says that its iterations or
    its halt are spans of :func:`spangate.run`; a framework's iterations within ours are left out.
    """

    head: Span
    is_ours: bool = False
    iterations: list[Span] = field(default_factory=list)
    halts: list[Span] = field(default_factory=list)
    tools: list[Span] = field(default_factory=list)

    @property
    def max_iters(self) -> int | None:
        """The bound that the loop declares, None if it declares none."""
        return whole(self.head, "max_iters")


def loops_of(run: Run) -> Sequence[Loop]:
    """Return the loops of a run in the order in which they began."""
    halts = [span for span in run.of_role("other") if span.name == HALT and is_ours(span)]
    iterations = run.of_role("iteration")
    if not (halts or iterations):
        return ()
    above = nearest(run, lambda span: span.role == "agent")
    found: dict[int, Loop] = {}

    def loop_of(span: Span) -> Loop:
        head = above(span) or run.root
        return found.setdefault(id(head), Loop(head))

    for span in iterations:
        loop = loop_of(span)
        loop.iterations.append(span)
        loop.is_ours = loop.is_ours or is_ours(span)
    for span in halts:
        loop = loop_of(span)
        loop.halts.append(span)
        loop.is_ours = True
    for span in run.of_role("tool"):
        owner = above(span)
        if owner is not None and id(owner) in found:
            found[id(owner)].tools.append(span)
    for loop in found.values():
        loop.iterations = [span for span in loop.iterations if is_ours(span)] or loop.iterations
    return [*found.values()]


def is_ours(span: Span) -> bool:
    """Say whether a span is one of a loop of the program's own."""
    return dialect_of(span).name == "native"


def whole(span: Span, name: str) -> int | None:
    """Return a whole number of a native span, None where it is none."""
    value = native(span.attributes, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def gaps(loop: Loop) -> Iterator[tuple[Span, str]]:
    """Yield the iterations before which another is missing, with what shows it.

    Ours are numbered, from 1 (or 0) on. A framework's are where their names say so, or where each names the cycle that
    it follows; others show no order but that of their starts.
    """
    if all(is_ours(span) for span in loop.iterations):
        yield from _unnumbered(loop)
    else:
        yield from _steps_left_out(loop.iterations)
        yield from _cycles_left_out(loop.iterations)


def _unnumbered(loop: Loop) -> Iterator[tuple[Span, str]]:
    last: int | None = None
    for span in loop.iterations:
        number = whole(span, "iteration")
        if number is None:
            yield span, "has no number"
            continue
        if number not in ((0, 1) if last is None else (last + 1,)):
            yield span, f"is number {number}, " + ("the first" if last is None else f"after number {last}")
        last = number
    for halt in loop.halts:
        told = whole(halt, "last_iteration")
        if told is not None and last is not None and told != last:
            yield halt, f"says that iteration {told} was the last, which was {last}"


def _steps_left_out(iterations: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    last: int | None = None
    for span in iterations:
        step = _STEP.fullmatch(span.name)
        if step is not None:
            number = int(step[1])
            if last is not None and number != last + 1:
                yield span, f"is step {number}, after step {last}"
            last = number


def _cycles_left_out(iterations: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    known = {span.attributes.get(CYCLE_ID) for span in iterations}
    for span in iterations:
        follows = span.attributes.get(PARENT_CYCLE_ID)
        if isinstance(follows, str) and follows not in known:
            yield span, f"follows cycle {follows}, which is not in the run"
