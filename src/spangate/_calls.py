"""Which generation spans record one and the same model call: instrumentations stacked on it, and answers seen again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run
from spangate._tokens import Reading, Tokens, read

_BREAKS_STACK = ("tool", "agent")


@dataclass(slots=True, eq=False)
class Sighting:
    """One generation span and what it says. ``around`` is the generation that it is stacked in."""

    span: Span
    reading: Reading
    around: Sighting | None = None
    inside: list[Sighting] | None = None
    depth: int = -1
    leader: Sighting | None = None
    wraps_several: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """One model call: the spans that recorded it, the innermost first, and what it used."""

    sightings: Sequence[Sighting]
    tokens: Tokens

    @property
    def span(self) -> Span:
        """The span that stands for the call: the innermost, of equals the first."""
        return self.sightings[0].span


def calls_of(run: Run) -> Sequence[Call]:
    """Return the model calls of ``run``, each once.

    Spans record one call if one generation is nested in the other with no tool and no agent between them, if they
    share a response id, or if they have one span id. A generation around several calls is none itself: its retries
    are. Ids that one instrumentation gives to answers of different sizes are made up and prove nothing.
    """
    by_span = _sightings(run)
    sightings = run.walk(list(by_span.values()))
    if _stack(run, by_span, sightings) | _join_answers(sightings):
        return run.walk(_merged(sightings))
    return run.walk([Call((seen,), seen.reading.counted) for seen in sightings])


def _sightings(run: Run) -> dict[int, Sighting]:
    twins = run.twins
    return {
        id(span): Sighting(span, read(dialect_of(span).usage(span)))
        for span in run.of_role("generation")
        if id(span) not in twins
    }


def _stack(run: Run, by_span: dict[int, Sighting], sightings: Iterable[Sighting]) -> bool:
    """Find for every generation the one that it is nested in; say whether there is any such."""
    stacked = False
    known: dict[int, Sighting | None] = {}
    for sighting in sightings:
        outer = _around(run, sighting.span, by_span, known)
        if outer is not None and outer is not sighting:
            _nest(sighting, outer)
            stacked = True
    for root in run.claimed:
        stray = by_span.get(id(root))
        host = None if stray is None else next((host for host in sightings if _holds(host, stray)), None)
        if stray is not None and host is not None:
            _nest(stray, host)
            stacked = True
    return stacked


def _nest(inner: Sighting, outer: Sighting) -> None:
    inner.around = outer
    if outer.inside is None:
        outer.inside = []
    outer.inside.append(inner)


def _around(run: Run, span: Span, sightings: dict[int, Sighting], known: dict[int, Sighting | None]) -> Sighting | None:
    """Walk up to the next generation. ``known`` remembers the way, so that no span is passed twice."""
    passed: list[int] = []
    found: Sighting | None = None
    above = run.parent_of(span)
    while above is not None and above.role not in _BREAKS_STACK:
        key = id(above)
        if key in sightings:
            found = sightings[key]
            break
        if key in known:
            found = known[key]
            break
        known[key] = None
        passed.append(key)
        above = run.parent_of(above)
    for key in passed:
        known[key] = found
    return found


def _holds(host: Sighting, stray: Sighting) -> bool:
    """Say whether a generation in a tree of its own lies in the time of ``host`` and used the same."""
    outer, inner = host.span, stray.span
    return (
        outer.trace_id != inner.trace_id
        and outer.end_ns is not None
        and inner.end_ns is not None
        and outer.start_ns <= inner.start_ns
        and inner.end_ns <= outer.end_ns
        and None not in stray.reading.recorded
        and host.reading.recorded == stray.reading.recorded
    )


def _levels(sightings: Iterable[Sighting]) -> list[list[Sighting]]:
    """Sort the spans by how deep they are stacked, the outermost level first."""
    levels: list[list[Sighting]] = []
    for sighting in sightings:
        chain: list[Sighting] = []
        at: Sighting | None = sighting
        while at is not None and at.depth < 0:
            at.depth = 0  # a circle of parents closes here
            chain.append(at)
            at = at.around
        depth = -1 if at is None else at.depth
        for below in reversed(chain):
            depth += 1
            below.depth = depth
            while depth >= len(levels):
                levels.append([])
            levels[depth].append(below)
    return levels


def _join_answers(sightings: Iterable[Sighting]) -> bool:
    """Join the spans that share a response id; say whether there are any such."""
    by_answer: dict[str, Sighting] = {}
    shared: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        answer = dialect_of(sighting.span).response_id(sighting.span)
        if answer is not None:
            first = by_answer.setdefault(answer, sighting)
            if first is not sighting:
                shared.setdefault(answer, [first]).append(sighting)
    for same in shared.values():
        if not _is_made_up(same):
            for other in same[1:]:
                _join(same[0], other)
    return bool(shared)


def _is_made_up(same: Sequence[Sighting]) -> bool:
    """Say whether one instrumentation gave this response id to answers of different sizes."""
    sizes: dict[tuple[str, bool, int], int] = {}
    return any(
        sizes.setdefault((seen.span.scope, seen.around is None, side), count) != count
        for seen in same
        for side, count in enumerate(seen.reading.recorded)
        if count is not None
    )


def _join_stacked(outer: Sighting, inside: Sequence[Sighting]) -> None:
    """Join a generation with the call that is nested in it; around several calls it is only a wrapper."""
    leaders = {id(_leader(inner)) for inner in inside}
    if len(leaders) == 1:
        _join(inside[0], outer)
    elif id(_leader(outer)) not in leaders:
        outer.wraps_several = True


def _join(one: Sighting, other: Sighting) -> None:
    top, joined = _leader(one), _leader(other)
    if top is not joined:
        joined.leader = top


def _leader(sighting: Sighting) -> Sighting:
    while sighting.leader is not None:
        if sighting.leader.leader is not None:
            sighting.leader = sighting.leader.leader
        sighting = sighting.leader
    return sighting


def _merged(sightings: Iterable[Sighting]) -> list[Call]:
    """Make calls of spans of which some are joined or nested."""
    levels = _levels(sightings)
    for level in reversed(levels):
        for outer in level:
            if outer.inside is not None:
                _join_stacked(outer, outer.inside)
    groups: dict[int, list[Sighting]] = {}
    wrappers: set[int] = set()
    for level in reversed(levels):
        for sighting in level:
            key = id(_leader(sighting))
            groups.setdefault(key, []).append(sighting)
            if sighting.wraps_several:
                wrappers.add(key)
    return [Call(group, _merged_tokens(group)) for key, group in groups.items() if key not in wrappers]


def _merged_tokens(group: Sequence[Sighting]) -> Tokens:
    """Return what the call used, side by side: the innermost spans that know a side tell it.

    Two spans at one depth that differ saw the call to different ends; the larger count saw more of it.
    """
    return _deepest(group, 0), _deepest(group, 1)


def _deepest(group: Sequence[Sighting], side: int) -> int | None:
    known = [(seen.depth, count) for seen in group if (count := seen.reading.counted[side]) is not None]
    return max(known)[1] if known else None
