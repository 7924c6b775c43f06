"""In which order causes put what happened inside one agent, as ranks: what has the same rank is in no order.

Clocks decide nothing that causes decide. A tool comes after the model call that asked for its call id, or that it names
in ``caused_by``; a model call after the tools whose results it received. So the tools of one turn have one rank,
whichever of them ran first. What says nothing of its causes comes after what had ended when it started, which is the
order of a program that runs one thing after the other; of tools that a model asked for without an id, only model calls
count, for a framework may run them at once or in turn as it likes.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spangate._records import Span

FIRST: Final = 0


@dataclass(slots=True, eq=False)
class Event:
    """Something that happened inside an agent: a model call, a call of a tool, or an agent of its own.

    ``is_asked`` says that a model asked for it, though which call did is not known.
    """

    span: Span
    is_generation: bool = False
    is_asked: bool = False
    rank: int = FIRST


def rank(events: Sequence[Event], causes: Mapping[Span, Sequence[Span]]) -> None:
    """Set the rank of each event. ``events`` are in the order of their starts, ``causes`` may name others, too."""
    _Ranking(events, causes).run()


class _Ranking:
    """Goes through events in the order of their starts, but never to one before its causes."""

    def __init__(self, events: Sequence[Event], causes: Mapping[Span, Sequence[Span]]) -> None:
        self._events = events
        numbers = {event.span: number for number, event in enumerate(events)}
        self._causes: dict[int, Sequence[int]] = {}
        self._effects: dict[int, list[int]] = {}
        for number, event in enumerate(events):
            named = causes.get(event.span, ())
            found = [numbers[cause] for cause in named if cause in numbers and cause is not event.span]
            if found:
                self._causes[number] = found
                for cause in found:
                    self._effects.setdefault(cause, []).append(number)
        self._waiting = {number: len(found) for number, found in self._causes.items()}
        self._ready = [(event.span.start_ns, at) for at, event in enumerate(events) if at not in self._waiting]
        self._done = [False] * len(events)
        self._ending: list[tuple[int, int, int, bool]] = []
        self._last = self._last_generation = FIRST - 1

    def run(self) -> None:
        """Rank all events; those that cause each other in a circle as if they said nothing."""
        if not self._causes:
            for number in range(len(self._events)):
                self._place(number)
            return
        heapq.heapify(self._ready)
        self._place_ready()
        for number, event in enumerate(self._events):
            if not self._done[number]:
                self._causes[number] = [cause for cause in self._causes.get(number, ()) if self._done[cause]]
                heapq.heappush(self._ready, (event.span.start_ns, number))
                self._place_ready()

    def _place_ready(self) -> None:
        while self._ready:
            _, number = heapq.heappop(self._ready)
            if self._done[number]:
                continue
            self._place(number)
            self._done[number] = True
            for effect in self._effects.get(number, ()):
                self._waiting[effect] -= 1
                if not self._waiting[effect]:
                    heapq.heappush(self._ready, (self._events[effect].span.start_ns, effect))

    def _place(self, number: int) -> None:
        """Rank one event, all causes of which have their ranks."""
        event = self._events[number]
        span = event.span
        self._settle(span.start_ns)
        event.rank = 1 + self._rank_before(number, event)
        if span.end_ns is not None:
            heapq.heappush(self._ending, (span.end_ns, span.start_ns, event.rank, event.is_generation))

    def _rank_before(self, number: int, event: Event) -> int:
        """Return the rank of what comes before an event."""
        causes = self._causes.get(number)
        if causes:
            return max(self._events[cause].rank for cause in causes)
        return self._last_generation if event.is_asked else self._last

    def _settle(self, now_ns: int) -> None:
        """Take in what has ended by now. What starts at the very moment at which it began did not come after it."""
        while self._ending and self._ending[0][0] <= now_ns and self._ending[0][1] < now_ns:
            _, _, rank_, is_generation = heapq.heappop(self._ending)
            self._last = max(self._last, rank_)
            if is_generation:
                self._last_generation = max(self._last_generation, rank_)
