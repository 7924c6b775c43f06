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
    known: dict[int, Span | None] = {}

    def look_up(span: Span) -> Span | None:
        path: list[Span] = []
        at = span
        while id(at) not in known:
            above = run.parent_of(at)
            if above is None or wanted(above):
                known[id(at)] = above
                break
            known[id(at)] = None  # so that a cycle of parents ends here
            path.append(at)
            at = above
        found = known[id(at)]
        for below in path:
            known[id(below)] = found
        return found

    return look_up


def nested(run: Run, spans: Iterable[Span], role: Role, ends: Set[Role]) -> Iterator[tuple[Span, Span]]:
    """Yield those of ``spans`` that are inside a span of ``role``, with that span; none of ``ends`` lies between."""
    parents = run.parents
    stops = {role, *ends}
    look_up = nearest(run, lambda span: span.role in stops)
    for span in spans:
        above = parents.get(id(span))
        if above is not None and above.role not in stops:
            above = look_up(above)  # every span below it takes the same way up, which is walked once
        if above is not None and above.role == role and above is not span:
            yield span, above
