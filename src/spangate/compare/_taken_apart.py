"""A run taken apart into steps, each inside of what made it, and ranked by what caused it.

Two spans by which two instrumentations tell of one call are one step. Model calls are no steps: they put the others in
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spangate._causes import causes
from spangate._causes.derived import derived_of
from spangate._cites.arguments import as_object
from spangate._cites.match import FRAMES, is_one_call
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
        self._asked: dict[str, Any] | None = None
        self._names_asked: dict[Step, set[str | None]] = {}
        self._frame_above = nearest(run, lambda span: span.role in FRAMES)
        self._step_of: dict[Span, Step] = {span: Step("agent", span.name, span) for span in run.of_role("agent")}
        self._by_id: dict[str | None, list[Span]] = {}
        for span in run.of_role("tool"):
            self._add_call(span)
        self._models: dict[Step, list[Span]] = {}
        for span in run.of_role("generation"):
            self._models.setdefault(self._home(span), []).append(span)
        for span, step in self._step_of.items():
            if step.span is span:
                self._home(span).take_in(step)
        self._rank()

    def _add_call(self, span: Span) -> None:
        """Make a step of a call, unless its span is inside another one that tells of the same."""
        call = dialect_of(span).tool_call(span)
        self._by_id.setdefault(call.call_id, []).append(span)
        frame = self._frame_above(span)
        outer = None if frame is None or frame.role != "tool" else self._step_of.get(frame)
        if outer is None or not is_one_call(outer, call.call_id, call.name):
            told = as_object(call.arguments)
            self._step_of[span] = Step("tool", call.name or "", span, call_id=call.call_id, told=told)
            return
        outer.call_id = outer.call_id or call.call_id
        outer.name = outer.name or call.name or ""
        outer.others += (span,)
        self._step_of[span] = outer

    def _home(self, span: Span) -> Step:
        """Return the step that a span is inside of; model calls are none."""
        above = self._frame_above(span)
        while above is not None and above.role == "generation":
            above = self._frame_above(above)
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
        for edges in (self._run.remember(causes).of, derived_of(self._run, self._by_id)):
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
