"""Which model call of one run stands for which of the other.

They are joined by the ``generation_id`` that their spans declare, where every call has one; else by position within
their agent, the nearest span above with the role of an agent, which is joined with one of the same name in the other
run, in the order of the first calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple, TypeAlias

from spangate._names import stable_name
from spangate._records import Span
from spangate.compare._requests import Request
from spangate.compare._results import results_of

JoinedBy: TypeAlias = Literal["generation_id", "position"]


class Together(NamedTuple):
    """Two calls, one of which may be None, and whether they are the first of their agent."""

    a: Request | None
    b: Request | None
    first: bool


def join(ours: Sequence[Request], theirs: Sequence[Request]) -> tuple[JoinedBy, list[Together]]:
    """Return every call of two runs with its counterpart, and how that was found."""
    if _all_named(ours) and _all_named(theirs):
        return "generation_id", list(_by_id(ours, theirs))
    return "position", list(_by_position(ours, theirs))


def _all_named(requests: Sequence[Request]) -> bool:
    ids = [request.generation_id for request in requests]
    return None not in ids and len(set(ids)) == len(ids)


def _by_id(ours: Sequence[Request], theirs: Sequence[Request]) -> Iterator[Together]:
    known = {request.generation_id: request for request in theirs}
    firsts = {group[0].span for requests in (ours, theirs) for group in _groups(requests)}
    for request in ours:
        yield Together(request, known.pop(request.generation_id, None), request.span in firsts)
    for request in known.values():
        yield Together(None, request, request.span in firsts)


def _by_position(ours: Sequence[Request], theirs: Sequence[Request]) -> Iterator[Together]:
    """Join the calls of agents of one name, agent by agent in the order of their first calls, by their order."""
    waiting: dict[str, list[list[Request]]] = defaultdict(list)
    for group in _groups(theirs):
        waiting[_agent_name(group)].append(group)
    alone = []
    for group in _groups(ours):
        others = waiting.get(_agent_name(group))
        if others:
            yield from _zipped(group, others.pop(_like(group[0], others)))
        else:
            alone.append(group)
    left = [group for groups in waiting.values() for group in groups]
    for mine, other in zip_longest(alone, left, fillvalue=()):  # of agents that were given other names
        yield from _zipped(mine, other)


def _groups(requests: Sequence[Request]) -> list[list[Request]]:
    groups: dict[Span | None, list[Request]] = defaultdict(list)
    for request in requests:
        groups[request.agent].append(request)
    return list(groups.values())


def _agent_name(group: Sequence[Request]) -> str:
    agent = group[0].agent
    return "" if agent is None else stable_name(agent.name)


def _like(first: Request, others: Sequence[Sequence[Request]]) -> int:
    """Return which of several agents of one name began with the same request: parallel ones come in any order."""
    for number, group in enumerate(others):
        if results_of(first, group[0]) == ("ok",):
            return number
    return 0


def _zipped(ours: Sequence[Request], theirs: Sequence[Request]) -> Iterator[Together]:
    for number, (before, after) in enumerate(zip_longest(ours, theirs)):
        yield Together(before, after, number == 0)
