"""What tools returned, in bytes: each invocation once, however many spans record it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spangate._dialects import dialect_of
from spangate._lineage import nested
from spangate._payload import recorded_bytes
from spangate._records import ABSENT, Role, Span
from spangate._run import Run
from spangate._usage.tokens import Flaw, flaw_of, whole_number

DECLARED: Final = "tool_payload_bytes"
"""The attribute by which a tool span declares its payload itself."""

_ENDS_INVOCATION: Final[frozenset[Role]] = frozenset({"agent", "workflow", "iteration", "generation"})


@dataclass(slots=True, eq=False)
class Invocation:
    """One execution of a tool that stands in another or has another in it, seen from its outermost span.

    ``size`` is in bytes, None where nothing usable was recorded; ``flaws`` say what is wrong with a declared size.
    """

    span: Span
    name: str
    call_id: str | None
    size: int | None
    flaws: Sequence[Flaw] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Invocations:
    """Executions of tools: those that stand alone, nearly always all of them, and the others.

    A ``single`` one is its span and no more: what a long run would keep of its tools is what the garbage collector
    would walk through.
    """

    single: Sequence[Span]
    nested: Sequence[Invocation]

    def __len__(self) -> int:
        return len(self.single) + len(self.nested)

    def sizes(self) -> Iterator[tuple[Span, int | None, Sequence[Flaw]]]:
        """Yield the outermost span of each, the bytes that it returned, and what is wrong with a declared size."""
        for one in self.nested:
            yield one.span, one.size, one.flaws
        for span in self.single:
            size, flaws = _size(span)
            yield span, size, flaws

    def of(self, run: Run, name: str) -> Invocations:
        """Return the executions of one tool. All are of ``run``."""
        single = [span for span in self.single if _name(span, dialect_of(span).tool_call(span).name) == name]
        return Invocations(run.walk(single), run.walk([one for one in self.nested if one.name == name]))


def invocations_of(run: Run) -> Invocations:
    """Return the tool invocations of ``run``.

    A tool span inside a tool span is the same invocation if both have the same call id, or the same name where one of
    them has no id: the framework's span around the client's. The outermost span that knows a size tells it.
    """
    tools = run.of_role("tool")
    around: dict[Span, Span | None] = {}
    for inner, outer in nested(run, tools, "tool", _ENDS_INVOCATION):
        around.setdefault(outer, None)
        around[inner] = outer
    if not around:
        return Invocations(tools, ())
    found = _told_apart([span for span in tools if span in around], around)
    return Invocations(run.walk([span for span in tools if span not in around]), run.walk(found))


def _size(span: Span) -> tuple[int | None, Sequence[Flaw]]:
    """Return the bytes that one tool span says it returned, None if nothing usable, and what is wrong with that."""
    declared = span.attributes.get(DECLARED)
    if declared is None:
        result = dialect_of(span).tool_result(span)
        return None if result is ABSENT else recorded_bytes(result), ()
    number, kind = whole_number(declared)
    return number, () if kind is None else (flaw_of(DECLARED, declared, kind, number),)


def _told_apart(tools: Iterable[Span], around: Mapping[Span, Span | None]) -> list[Invocation]:
    """Return the invocations that tool spans in one another record."""
    found: list[Invocation] = []
    by_span: dict[Span, Invocation] = {}
    for span in tools:
        call = dialect_of(span).tool_call(span)
        name = _name(span, call.name)
        size, flaws = _size(span)
        above = around[span]
        outer = None if above is None else by_span.get(above)
        if outer is not None and _is_same(outer, name, call.call_id):
            outer.size = size if outer.size is None else outer.size
            outer.call_id = outer.call_id or call.call_id
            outer.flaws = (*outer.flaws, *flaws)
            by_span[span] = outer
        else:
            by_span[span] = invocation = Invocation(span, name, call.call_id, size, flaws)
            found.append(invocation)
    return found


def _name(span: Span, recorded: str | None) -> str:
    return recorded or span.name


def _is_same(outer: Invocation, name: str, call_id: str | None) -> bool:
    if outer.call_id is not None and call_id is not None:
        return outer.call_id == call_id
    return outer.name == name
