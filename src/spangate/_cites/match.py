"""Gives every tool span to the call that it executed: by call id, else by name, one turn at a time."""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from spangate._cites.arguments import as_object, differ
from spangate._cites.conversation import Call
from spangate._dialects import dialect_of
from spangate._lineage import nearest
from spangate._paced import paced_like
from spangate._records import Span
from spangate._run import Run

Thing = TypeVar("Thing")

FRAMES: Final = frozenset({"generation", "tool", "agent"})
"""Roles of spans that part what is inside them from what is around: a span in one of another belongs to its call."""


@dataclass(eq=False, slots=True)
class Invocation:
    """One execution of a tool for ``agent``: a tool span, with the tool spans of the same call inside it."""

    span: Span
    agent: Span | None
    call_id: str | None
    name: str | None
    arguments: dict[str, Any] | None


def invocations(run: Run) -> Sequence[Invocation]:
    """Return what the tool spans of a run executed, in the order of their starts."""
    agent_above = nearest(run, lambda span: span.role == "agent")
    frame_above = nearest(run, lambda span: span.role in FRAMES)
    known: dict[Span, Invocation] = {}
    found: list[Invocation] = []
    for span in run.of_role("tool"):
        call = dialect_of(span).tool_call(span)
        frame = frame_above(span)
        outer = None if frame is None else known.get(frame)
        if outer is not None and is_one_call(outer, call.call_id, call.name):
            outer.call_id = outer.call_id or call.call_id
            outer.name = outer.name or call.name
            known[span] = outer
        else:
            known[span] = Invocation(span, agent_above(span), call.call_id, call.name, as_object(call.arguments))
            found.append(known[span])
    return run.walk(found)


class CallLike(Protocol):
    """What tells of a call of a tool: its id and its name, None or empty where it is not known."""

    @property
    def call_id(self) -> str | None: ...

    @property
    def name(self) -> str | None: ...


def is_one_call(outer: CallLike, call_id: str | None, name: str | None) -> bool:
    """Say whether a tool span directly inside another one is the same call, seen by another instrumentation."""
    if outer.call_id is not None and call_id is not None:
        return outer.call_id == call_id
    return not outer.name or not name or outer.name == name


def match(calls: Sequence[Call], executed: Sequence[Invocation]) -> None:
    """Count the executions of each call, and mark those calls for which they cannot be told.

    A span with an id serves the turn that asked for this id. Spans without serve calls of their name that no id has
    served; so do those with ids, if not one of these ids was ever asked for, since then they come from elsewhere.
    """
    asked = {call.call_id for call in calls}
    ids_agree = any(one.call_id is not None and one.call_id in asked for one in executed)
    _pair(calls, executed, _id_of, by_arguments=False)
    free = paced_like([one for one in executed if one.call_id is None or not ids_agree], executed)
    if free:
        _pair(calls, free, _name_of, by_arguments=True)
        _mark_unknown(calls, free)


def _id_of(either: Call | Invocation) -> str | None:
    return either.call_id


def _name_of(either: Call | Invocation) -> str | None:
    return either.name


def _mark_unknown(calls: Iterable[Call], free: Sequence[Invocation]) -> None:
    """Mark the calls without a span where the spans say too little to be sure that it is not one of them."""
    nameless = sum(1 for one in free if one.name is None)
    for call in calls:
        if call.missing and not call.unchecked:
            if call.name is None:
                call.unchecked = "neither its name nor its call id tells which tool span it is"
            elif nameless > 0:
                nameless -= call.missing
                call.unchecked = "a tool span that says not which tool it ran may be it"


def _pair(
    calls: Iterable[Call],
    executed: Sequence[Invocation],
    key_of: Callable[[Call | Invocation], str | None],
    *,
    by_arguments: bool,
) -> None:
    """Serve calls and executions of one key: those of one agent; a tool span that lost its place, to any agent."""
    of_agent: dict[tuple[str, Span | None], tuple[list[Call], list[Invocation]]] = {}
    of_any: dict[str, tuple[list[Call], list[Invocation]]] = {}
    for call in calls:
        key = key_of(call)
        if key is not None:
            of_agent.setdefault((key, call.agent), ([], []))[0].append(call)
            of_any.setdefault(key, ([], []))[0].append(call)
    for one in executed:
        key = key_of(one)
        if key in of_any:
            of_agent.get((key, one.agent), of_any[key])[1].append(one)
    for wanted, found in paced_like([*of_agent.values(), *of_any.values()], executed):
        if found:
            _serve(wanted, found, by_arguments=by_arguments)


def _serve(calls: Sequence[Call], executed: Sequence[Invocation], *, by_arguments: bool) -> None:
    """Give the executions to the calls of one id or name.

    Where several turns made such calls, an execution serves one that was asked for before it and answered after it,
    the one answered first before others. Where only one turn did, clocks have no say.
    """
    if len(calls) == len(executed) == 1 == calls[0].asked and not by_arguments:
        calls[0].unserved.clear()  # nearly always
        return
    several = any(call.asker is not calls[0].asker for call in calls)
    ahead = [
        _Slot(call, arguments, as_object(arguments) if by_arguments else None)
        for call in reversed(_by_start(calls, lambda call: call.asker.start_ns))
        for arguments in reversed(call.unserved)
    ]
    open_slots: list[_Slot] = []
    for one in _by_start(executed, lambda one: one.span.start_ns):
        at = one.span.start_ns
        while ahead and (not several or ahead[-1].call.asker.start_ns <= at):
            insort(open_slots, ahead.pop(), key=_deadline)
        while several and open_slots and _deadline(open_slots[0]) < at:
            open_slots.pop(0)
        chosen = _choose(open_slots, one.arguments)
        if chosen is not None:
            slot = open_slots.pop(chosen)
            unserved = slot.call.unserved
            del unserved[next(place for place, arguments in enumerate(unserved) if arguments is slot.arguments)]


class _Slot(NamedTuple):
    """One of the times that a turn asked for a call."""

    call: Call
    arguments: Any
    parsed: dict[str, Any] | None


def _deadline(slot: _Slot) -> int:
    receiver = slot.call.receiver
    return sys.maxsize if receiver is None else receiver.start_ns


def _by_start(things: Sequence[Thing], start_ns: Callable[[Thing], int]) -> Sequence[Thing]:
    """Order by time. What comes from one run nearly always is, and then this is one walk."""
    starts = [start_ns(thing) for thing in things]
    if all(earlier <= later for earlier, later in pairwise(starts)):
        return things
    return sorted(things, key=start_ns)


def _choose(slots: Sequence[_Slot], found: dict[str, Any] | None) -> int | None:
    """Return the place of the first slot with equal arguments, else of the first with arguments that may be meant."""
    possible: int | None = None
    for place, slot in enumerate(slots):
        wanted = slot.parsed
        if wanted is not None and found is not None and found.keys() == wanted.keys():
            if not differ(wanted, found):
                return place
        elif possible is None:
            possible = place
            if found is None:
                break
    return possible
