"""Which generation spans record one and the same model call: instrumentations stacked on it, and answers seen again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spangate._paced import paced_like
from spangate._records import Span
from spangate._usage.tokens import Reading


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


def nest(inner: Sighting, outer: Sighting) -> None:
    """Note that the one is stacked in the other."""
    inner.around = outer
    if outer.inside is None:
        outer.inside = []
    outer.inside.append(inner)


def join_answers(same: Sequence[Sighting]) -> None:
    """Join spans that share a response id, unless that is made up."""
    if not _is_made_up(same):
        for other in same[1:]:
            _join(same[0], other)


def grouped(sightings: Sequence[Sighting]) -> list[list[Sighting]]:
    """Group the spans of one call, the innermost first. A generation around several calls is in no group."""
    levels = [paced_like(level, sightings) for level in reversed(_levels(sightings))]
    for level in levels:
        for outer in level:
            if outer.inside is not None:
                _join_stacked(outer, outer.inside)
    groups: dict[int, list[Sighting]] = {}
    wrappers: set[int] = set()
    for level in levels:
        for sighting in level:
            key = id(_leader(sighting))
            groups.setdefault(key, []).append(sighting)
            if sighting.wraps_several:
                wrappers.add(key)
    return [group for key, group in groups.items() if key not in wrappers]


def _is_made_up(same: Sequence[Sighting]) -> bool:
    """Say whether one instrumentation gave this response id to answers of different sizes."""
    sizes: dict[tuple[str, bool, int], int] = {}
    return any(
        sizes.setdefault((seen.span.scope, seen.around is None, side), count) != count
        for seen in same
        for side, count in enumerate(seen.reading.recorded)
        if count is not None
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
