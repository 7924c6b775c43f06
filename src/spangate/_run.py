"""The unit that is judged: one run, its spans, and the look-ups over them that every gate shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from spangate._paced import owned, paced_like, take_apart
from spangate._records import Changes, Exit, Finding, LogRecord, Role, Span, Trigger

Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Run:
    """One execution of an agent, closed for judging.

    ``spans`` stand in the order of their starts and hold the root. ``root`` is the span that carries the verdict.
    ``notes`` are findings of whoever gathered the run (late children, claimed strays, bounds that were reached).
    ``starts_known`` is False for a recording of ended spans only: whether a span is still open cannot be told then.
    ``claimed`` are the roots of trees outside the run's own tree that belong to it all the same. ``exits`` are the
    programs that it started and that have ended; None where nobody has watched them, as in a recording. ``changes`` is
    what became of its working tree; None where nobody has looked. ``records`` are its log records in the order in which
    they were emitted, if there is a log processor beside the gate.
    """

    run_id: str
    root: Span
    spans: Sequence[Span]
    trigger: Trigger = "root_end"
    notes: Sequence[Finding] = ()
    starts_known: bool = True
    claimed: Sequence[Span] = ()
    exits: Sequence[Exit] | None = None
    changes: Changes | None = None
    records: Sequence[LogRecord] = ()

    @property
    def name(self) -> str:
        """The name of the root span."""
        return self.root.name

    def remember(self, question: Callable[[Run], Answer]) -> Answer:
        """Return ``question(self)``, asked once however many gates want to know: for answers that cost a walk."""
        answers = self._answers
        if question not in answers:
            answers[question] = question(self)
        answer: Answer = answers[question]
        return answer

    def walk(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return ``items``, one or more for every few spans, to be walked through with the rests that ``spans`` has."""
        return paced_like(items, self.spans)

    def take_apart(self, rest: Callable[[], None]) -> None:
        """Forget every look-up, with rests. Only what the run was made of may be asked for afterwards."""
        for name, known in [*vars(self).items()]:
            if name not in self.__dataclass_fields__:
                take_apart(known, rest)

    def give_up_spans(self) -> list[Span]:
        """Give the list of spans away. Nothing may be asked of the run afterwards."""
        return owned(self.spans)

    @cached_property
    def _answers(self) -> dict[Callable[[Run], Any], Any]:
        return {}

    @cached_property
    def by_id(self) -> dict[int, dict[int | None, Span]]:
        """Spans by trace id and span id; of two spans with one id the first that started."""
        traces: dict[int, dict[int | None, Span]] = {}
        trace_id, trace = -1, {}  # most runs have one: no pair of ids is made for each span
        for span in self.spans:
            if span.trace_id != trace_id:
                trace_id, trace = span.trace_id, traces.setdefault(span.trace_id, {})
            trace.setdefault(span.span_id, span)
        return traces

    @cached_property
    def twins(self) -> frozenset[Span]:
        """The spans whose id an earlier span of the run has."""
        if sum(map(len, self.by_id.values())) == len(self.spans):
            return frozenset()
        return frozenset(span for span in self.spans if self.by_id[span.trace_id][span.span_id] is not span)

    @cached_property
    def children(self) -> dict[tuple[int, int], list[Span]]:
        """Children by their parent's (trace id, span id), in the order of their starts; also of parents not here."""
        found: dict[tuple[int, int], list[Span]] = {}
        for span in self.spans:
            if span.parent_id is not None:
                key = span.trace_id, span.parent_id
                if key in found:
                    found[key].append(span)
                else:
                    found[key] = [span]
        return found

    @cached_property
    def by_role(self) -> dict[str, Sequence[Span]]:
        """Spans by role, in the order of their starts."""
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            if span.role in found:
                found[span.role].append(span)
            else:
                found[span.role] = [span]
        return {role: self.walk(spans) for role, spans in found.items()}

    def of_role(self, *roles: Role) -> Sequence[Span]:
        """Return the spans with one of ``roles``; in the order of their starts if one role is asked for."""
        if len(roles) == 1:
            return self.by_role.get(roles[0], [])
        return [span for role in roles for span in self.by_role.get(role, ())]

    def parent_of(self, span: Span) -> Span | None:
        """Return the parent of ``span``, which is in the run, if it is there too."""
        trace = self.by_id.get(span.trace_id)
        return None if trace is None else trace.get(span.parent_id)

    def children_of(self, span: Span) -> Sequence[Span]:
        """Return the direct children of ``span``, in the order of their starts."""
        return self.children.get((span.trace_id, span.span_id), ())

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield parent, grandparent and so on; ends at the top, at a missing parent, or where a cycle closes."""
        seen = {id(span)}
        above = self.parent_of(span)
        while above is not None and id(above) not in seen:
            seen.add(id(above))
            yield above
            above = self.parent_of(above)

    def descendants(self, span: Span) -> Iterator[Span]:
        """Yield every span below ``span``, each once, in no order that means anything."""
        seen = {id(span)}
        todo = list(self.children_of(span))
        while todo:
            below = todo.pop()
            if id(below) not in seen:
                seen.add(id(below))
                yield below
                todo.extend(self.children_of(below))
