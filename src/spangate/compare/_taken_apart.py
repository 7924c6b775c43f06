"""A run taken apart into steps, each inside of what made it, and ranked by what caused it.

Two spans by which two instrumentations tell of one call are one step. Model calls are no steps: they put the others in
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spangate._causes import causes
from spangate._causes.derived import derived
from spangate._cites.match import invocations
from spangate._dialects import dialect_of
from spangate._lineage import nearest
from spangate._records import ABSENT, Span
from spangate._run import Run
from spangate.compare._order import Event, rank
from spangate.compare._step import Step

_AMBIGUOUS: Final = object()


class TakenApart:
    """The steps of a run inside of each other: ``top`` is the whole run. They have their spans and ranks, no more."""

    def __init__(self, run: Run) -> None:
        self.top = Step("run")
        self._run = run
        self._step_of = _steps(run)
        self._asked: dict[str, Any] | None = None
        self._names_asked: dict[Step, set[str | None]] = {}
        above = nearest(run, self._step_of.__contains__)
        self._models: dict[Step, list[Span]] = {}
        for span in run.of_role("generation"):
            self._models.setdefault(self._home(above(span)), []).append(span)
        for span in _by_start(self._step_of):
            step = self._step_of[span]
            if step.span is span:
                self._home(above(span)).take_in(step)
        self._rank()

    def _home(self, above: Span | None) -> Step:
        return self.top if above is None else self._step_of[above]

    def asked(self, call_id: str | None) -> Any:
        """Return the arguments with which a model asked for a call, ``ABSENT`` where that cannot be told."""
        if call_id is None:
            return ABSENT
        if self._asked is None:
            self._asked = {}
            for span in self._run.of_role("generation"):
                for call in dialect_of(span).turn(span).asked or ():
                    if call.call_id is not None:
                        known = self._asked.setdefault(call.call_id, call.arguments)
                        if known != call.arguments:
                            self._asked[call.call_id] = _AMBIGUOUS
        found = self._asked.get(call_id, ABSENT)
        return ABSENT if found is _AMBIGUOUS else found

    def _rank(self) -> None:
        """Rank the steps inside of each one, where there are several."""
        crowded = [step for step in (self.top, *self._step_of.values()) if len(step.inside) > 1]
        if not crowded:
            return
        known = self._causes()
        for step in dict.fromkeys(crowded):
            models = self._models.get(step, ())
            events = [Event(span, is_generation=True) for span in models]
            events += (
                Event(inner.span, is_asked=self._is_asked(step, inner, known))
                for inner in step.inside
                if inner.span is not None
            )
            events.sort(key=lambda event: event.span.start_ns)
            rank(events, known)
            for event in events:
                if not event.is_generation:
                    self._step_of[event.span].rank = event.rank

    def _causes(self) -> Mapping[Span, Sequence[Span]]:
        """Return what caused each span, declared or derived. Of a call that two spans tell of, the outer one counts."""
        found: dict[Span, list[Span]] = {}
        for edges in (self._run.remember(causes).of, derived(self._run)):
            for effect, by in edges.items():
                found.setdefault(self._outermost(effect), []).extend(map(self._outermost, by))
        return found

    def _outermost(self, span: Span) -> Span:
        step = self._step_of.get(span)
        return span if step is None or step.span is None else step.span

    def _is_asked(self, home: Step, step: Step, known: Mapping[Span, Sequence[Span]]) -> bool:
        """Say whether a model asked for a call whose causes are not known, or may have: some record no messages."""
        if step.kind != "tool" or home not in self._models or step.span in known:
            return False
        if home not in self._names_asked:
            names: set[str | None] = set()
            for span in self._models[home]:
                asked = dialect_of(span).turn(span).asked
                names.update([None] if asked is None else [call.name for call in asked])
            self._names_asked[home] = names
        return None in self._names_asked[home] or step.name in self._names_asked[home]


def _steps(run: Run) -> dict[Span, Step]:
    """Return the step that each span of an agent or a tool tells of."""
    found = {span: Step("agent", span.name, span) for span in run.of_role("agent")}
    calls = invocations(run)
    for call in calls:
        found[call.span] = Step("tool", call.name or call.span.name, call.span, call_id=call.call_id)
    tools = run.of_role("tool")
    if len(calls) < len(tools):
        above = nearest(run, found.__contains__)
        for span in tools:
            outer = None if span in found else above(span)
            if outer is not None:
                found[outer].others += (span,)
        for step in [*found.values()]:
            found.update(dict.fromkeys(step.others, step))
    return found


def _by_start(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span.start_ns)
