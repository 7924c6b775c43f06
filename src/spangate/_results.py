"""What tools returned, in bytes: each invocation once, however many spans record it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangate._dialects import dialect_of
from spangate._payload import recorded_bytes
from spangate._records import ABSENT, Span
from spangate._run import Run
from spangate._tokens import Flaw, flaw_of, whole_number

DECLARED: Final = "tool_payload_bytes"
"""The attribute by which a tool span declares its payload itself."""

_ENDS_INVOCATION: Final = frozenset({"agent", "workflow", "iteration", "generation"})


@dataclass(slots=True, eq=False)
class Invocation:
    """One execution of a tool, seen from its outermost span.

    ``size`` is in bytes, None where nothing usable was recorded; ``flaws`` say what is wrong with a declared size.
    """

    span: Span
    name: str
    call_id: str | None
    size: int | None
    flaws: Sequence[Flaw] = ()


def invocations_of(run: Run) -> Sequence[Invocation]:
    """Return the tool invocations of ``run`` with the size of what each returned.

    A tool span inside a tool span is the same invocation if both have the same call id, or the same name where one of
    them has no id: the framework's span around the client's. The outermost span that knows a size tells it.
    """
    found: list[Invocation] = []
    by_span: dict[int, Invocation] = {}
    for span in run.of_role("tool"):
        call = dialect_of(span).tool_call(span)
        name = call.name or span.name
        size, flaws = _size(span.attributes.get(DECLARED), call.result)
        outer = _tool_around(run, span)
        around = None if outer is None else by_span.get(id(outer))
        if around is not None and _is_same(around, name, call.call_id):
            around.size = size if around.size is None else around.size
            around.call_id = around.call_id or call.call_id
            around.flaws = (*around.flaws, *flaws)
            by_span[id(span)] = around
        else:
            by_span[id(span)] = invocation = Invocation(span, name, call.call_id, size, flaws)
            found.append(invocation)
    return run.walk(found)


def _size(declared: Any, result: Any) -> tuple[int | None, Sequence[Flaw]]:
    if declared is None:
        return None if result is ABSENT else recorded_bytes(result), ()
    number, kind = whole_number(declared)
    return number, () if kind is None else (flaw_of(DECLARED, declared, kind, number),)


def _tool_around(run: Run, span: Span) -> Span | None:
    """Return the tool span that ``span`` is nested in, unless an agent's work lies between the two."""
    parent = run.parent_of(span)
    if parent is None or parent.role in _ENDS_INVOCATION:
        return None  # nearly always, and cheaper than a walk
    for above in run.ancestors(span):
        if above.role == "tool":
            return above
        if above.role in _ENDS_INVOCATION:
            return None
    return None


def _is_same(outer: Invocation, name: str, call_id: str | None) -> bool:
    if outer.call_id is not None and call_id is not None:
        return outer.call_id == call_id
    return outer.name == name
