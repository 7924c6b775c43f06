"""The trees of two runs as one: children of spans that stand side by side stand side by side by their role and name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from spangate._dialects import dialect_of
from spangate._records import ABSENT, Span
from spangate._redaction import without
from spangate._run import Run
from spangate.cli._tree_report import MAX_RAILS
from spangate.compare._alignment import align

Standing: TypeAlias = Literal["same", "changed", "added", "dropped"]
STANDINGS: Final[tuple[Standing, ...]] = ("same", "changed", "added", "dropped")


@dataclass(frozen=True)
class Pair:
    """A place of the tree: the span of the run that is compared with (``base``) and that of the run ``here``.

    One of them may be None. ``changed`` names what differs between them.
    """

    base: Span | None
    here: Span | None
    depth: int
    lasts: tuple[bool, ...]
    changed: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        """Say how the span here stands to the base."""
        if self.base is None:
            return "added"
        if self.here is None:
            return "dropped"
        return "changed" if self.changed else "same"


def pairs(base: Run, here: Run) -> Iterator[Pair]:
    """Yield the places of both trees in their order, each span of either run once."""
    walk = _Walk(base, here)
    yield from walk.below([base.root], [here.root], together=True)
    yield from walk.below(_tops(base), _tops(here))
    yield from walk.below(base.spans, here.spans)  # what is left by then is a cycle of parents


def _tops(run: Run) -> list[Span]:
    return [span for span in run.spans if run.parent_of(span) is None]


class _Walk:
    """Goes through two trees side by side."""

    def __init__(self, base: Run, here: Run) -> None:
        self._base, self._here = base, here
        self._seen: set[int] = set()

    def below(self, left: Sequence[Span], right: Sequence[Span], *, together: bool = False) -> Iterator[Pair]:
        """Yield the places of these spans and of all below them; of two tops that belong together as one place."""
        tops = [(left[0], right[0])] if together else self._aligned(left, right)
        for top in tops:
            waiting = [self._pair(*top, 0, ())]
            while waiting:
                pair = waiting.pop()
                if not self._enter(pair):
                    continue
                yield pair
                waiting += reversed(self._children(pair))

    def _enter(self, pair: Pair) -> bool:
        """Note the spans of a place; False if they have stood somewhere already, in a cycle."""
        here = {id(span) for span in (pair.base, pair.here) if span is not None}
        if here & self._seen:
            return False
        self._seen |= here
        return True

    def _children(self, pair: Pair) -> list[Pair]:
        left = () if pair.base is None else self._base.children_of(pair.base)
        right = () if pair.here is None else self._here.children_of(pair.here)
        found = self._aligned(left, right)
        return [
            self._pair(base, here, pair.depth + 1, (*pair.lasts, place == len(found))[:MAX_RAILS])
            for place, (base, here) in enumerate(found, 1)
        ]

    def _aligned(self, left: Sequence[Span], right: Sequence[Span]) -> list[tuple[Span | None, Span | None]]:
        left = [span for span in left if id(span) not in self._seen]
        right = [span for span in right if id(span) not in self._seen]
        if not left or not right:
            return [*((span, None) for span in left), *((None, span) for span in right)]
        found = align([(span.role, span.name) for span in left], [(span.role, span.name) for span in right])
        return [(None if base is None else left[base], None if here is None else right[here]) for base, here in found]

    def _pair(self, base: Span | None, here: Span | None, depth: int, lasts: tuple[bool, ...]) -> Pair:
        return Pair(base, here, depth, lasts, () if base is None or here is None else differences(base, here))


def differences(base: Span, here: Span) -> tuple[str, ...]:
    """Name what differs between two spans that stand in one place. How long they took never counts."""
    names = [label for label in ("role", "name") if getattr(base, label) != getattr(here, label)]
    if base.is_open != here.is_open:
        names.append("end")
    return (*names, *_answers(base, here))


def _answers(base: Span, here: Span) -> Iterator[str]:
    """Yield which answers of the spans' dialects differ."""
    old, new = dialect_of(base), dialect_of(here)
    if old.outcome(base) != new.outcome(here):
        yield "outcome"
    left, right = old.usage(base), new.usage(here)
    yield from (f"{side} tokens" for side in ("input", "output") if _differ(getattr(left, side), getattr(right, side)))
    if base.role == here.role == "generation":
        asked, asks = old.request(base), new.request(here)
        parts = ("model", "temperature", "system", "messages", "tools", "params")
        yield from (part for part in parts if _differ(getattr(asked, part), getattr(asks, part)))
    if base.role == here.role == "tool":
        call, calls = old.tool_call(base), new.tool_call(here)
        if _differ(call.arguments, calls.arguments):
            yield "arguments"
        if _differ(old.tool_result(base), new.tool_result(here)):
            yield "result"


def _differ(left: Any, right: Any) -> bool:
    """Say whether two recorded values differ in more than what differs between any two runs, such as times."""
    if left is ABSENT or right is ABSENT:
        return left is not right
    return bool(left != right) and bool(without(left) != without(right))
