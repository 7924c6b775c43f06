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
    parents = run.parents

    def look_up(span: Span) -> Span | None:
        found = parents.get(id(span))
        passed: list[int] = []
        while found is not None and not wanted(found):
            key = id(found)
            if key in known:
                found = known[key]
                break
            known[key] = None  # so that a cycle of parents ends here
            passed.append(key)
            found = parents.get(key)
        for key in passed:
            known[key] = found
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
