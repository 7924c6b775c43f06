"""What a span is inside of: the nearest ancestor with some property, for many spans in linear time over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import TypeAlias

from spangate._records import Role, Span
from spangate._run import Run

LookUp: TypeAlias = Callable[[Span], Span | None]


def nearest(run: Run, wanted: Callable[[Span], bool]) -> LookUp:
    """Make the look-up of the nearest span above a span that is ``wanted``; None where there is none in the run.

    What one look-up walks past is remembered for the next, so that a deep tree costs each of its spans one step.
    """
    known: dict[Span, Span | None] = {}
    parent_of = run.parent_of

    def look_up(span: Span) -> Span | None:
        found = parent_of(span)
        passed: list[Span] = []
        while found is not None and not wanted(found):
            if found in known:
                found = known[found]
                break
            known[found] = None  # so that a cycle of parents ends here
            passed.append(found)
            found = parent_of(found)
        for below in passed:
            known[below] = found
        return found

    return look_up


def nested(run: Run, spans: Iterable[Span], role: Role, ends: Set[Role]) -> Iterator[tuple[Span, Span]]:
    """Yield those of ``spans`` that are inside a span of ``role``, with that span; none of ``ends`` lies between."""
    parent_of = run.parent_of
    stops = {role, *ends}
    look_up = nearest(run, lambda span: span.role in stops)
    for span in spans:
        above = parent_of(span)
        if above is not None and above.role not in stops:
            above = look_up(above)  # every span below it takes the same way up, which is walked once
        if above is not None and above.role == role and above is not span:
            yield span, above
