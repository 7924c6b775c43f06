"""The graph of causes: its circles, an order in which causes come first, and what reaches what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from spangate._causes import in_order
from spangate._records import Span
from spangate._run import Run

Edges: TypeAlias = Mapping[Span, Sequence[Span]]
"""Causes by what they caused."""


def effects_of(run: Run, *edges: Edges) -> dict[Span, list[Span]]:
    """Return what each span caused, by ``edges`` and by being the parent of it."""
    found: dict[Span, list[Span]] = {}
    for span in run.spans:
        parent = run.parent_of(span)
        if parent is not None:
            found.setdefault(parent, []).append(span)
    for by in edges:
        for span, causes in by.items():
            for cause in causes:
                found.setdefault(cause, []).append(span)
    return found


def ordered(spans: Iterable[Span], effects: Mapping[Span, Sequence[Span]]) -> tuple[list[Span], list[Span]]:
    """Return the spans with causes first, and those for which there is no such order: circles and what follows."""
    waiting: dict[Span, int] = dict.fromkeys(spans, 0)
    for caused in effects.values():
        for span in caused:
            waiting[span] += 1
    ready = [span for span, causes in waiting.items() if not causes]
    for span in ready:  # it grows
        for effect in effects.get(span, ()):
            waiting[effect] -= 1
            if not waiting[effect]:
                ready.append(effect)
    return ready, [span for span, causes in waiting.items() if causes] if len(ready) < len(waiting) else []


def circles(spans: Iterable[Span], effects: Mapping[Span, Sequence[Span]]) -> list[list[Span]]:
    """Return a circle of each knot among ``spans``: spans that cause each other, each the cause of the next."""
    left = set(spans)
    return [_circle(knot, effects) for knot in _knots(left, effects)]


def _knots(left: set[Span], effects: Mapping[Span, Sequence[Span]]) -> list[set[Span]]:
    """Return the parts of the graph in which every span causes every other, or itself."""
    search = _Search()
    for start in in_order(left):
        todo = [] if start in search.number else [(start, iter(effects.get(start, ())))]
        while todo:
            span, following = todo[-1]
            search.enter(span)
            effect = next((one for one in following if one in left), None)
            if effect is None:
                todo.pop()
                search.leave(span, todo[-1][0] if todo else None)
            elif not search.has_met(span, effect):
                todo.append((effect, iter(effects.get(effect, ()))))
    return [knot for knot in search.found if len(knot) > 1 or not knot.isdisjoint(effects.get(next(iter(knot)), ()))]


class _Search:
    """Tarjan's search for strongly connected parts: how early each span was met, and how early one that it leads to."""

    def __init__(self) -> None:
        self.number: dict[Span, int] = {}
        self.found: list[set[Span]] = []
        self._lowest: dict[Span, int] = {}
        self._stack: dict[Span, None] = {}

    def enter(self, span: Span) -> None:
        """Number a span that is met for the first time."""
        if span not in self.number:
            self.number[span] = self._lowest[span] = len(self.number)
            self._stack[span] = None

    def has_met(self, span: Span, effect: Span) -> bool:
        """Say whether an effect of ``span`` was met before, and note how early."""
        if effect not in self.number:
            return False
        if effect in self._stack:
            self._lowest[span] = min(self._lowest[span], self.number[effect])
        return True

    def leave(self, span: Span, above: Span | None) -> None:
        """Have all effects of a span behind: it is the first of a part if it leads to none that was met earlier."""
        lowest = self._lowest[span]
        if above is not None:
            self._lowest[above] = min(self._lowest[above], lowest)
        if lowest == self.number[span]:
            part: set[Span] = set()
            while span not in part:
                part.add(self._stack.popitem()[0])
            self.found.append(part)


def _circle(knot: set[Span], effects: Mapping[Span, Sequence[Span]]) -> list[Span]:
    """Return a shortest circle through the span of a knot with the lowest id."""
    start = in_order(knot)[0]
    reached: dict[Span, Span] = {}
    ready = [start]
    for span in ready:  # it grows
        for effect in in_order(one for one in effects.get(span, ()) if one in knot):
            if effect is start:
                path = [span]
                while path[-1] is not start:
                    path.append(reached[path[-1]])
                return path[::-1]
            if effect not in reached:
                reached[effect] = span
                ready.append(effect)
    return [start]


def reaching(
    order: Sequence[Span], effects: Mapping[Span, Sequence[Span]], wanted: Mapping[Span, int]
) -> dict[Span, int]:
    """Return for each of the ``wanted`` spans the bits of the others from which a path of causes leads to it.

    ``wanted`` gives each its bit. What is known of a span is forgotten once it has been handed on.
    """
    known: dict[Span, int] = {}
    found: dict[Span, int] = {}
    for span in order:
        bits = known.pop(span, 0)
        own = wanted.get(span)
        if own is not None:
            found[span] = bits
            bits |= own
        if bits:
            for effect in effects.get(span, ()):
                before = known.get(effect, 0)
                known[effect] = bits if not before else before if before | bits == before else before | bits
    return found
