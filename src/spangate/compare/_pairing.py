"""The steps inside of one step in two runs, paired: the same, the same with other arguments, moved, or alone.

Equal steps are aligned in their order first, then, between those, steps of one name. What is left is paired where only
steps of the same rank stand between, which are in no order. Equal steps that are left then have moved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from spangate.compare._alignment import align
from spangate.compare._step import Step

KeyOf: TypeAlias = Callable[[Step], Hashable]


class Pairing(NamedTuple):
    """A step of one run and its counterpart in the other; None where it has none. ``moved``: it is in another place."""

    a: Step | None
    b: Step | None
    moved: bool = False


def pair_up(ours: Sequence[Step], theirs: Sequence[Step]) -> list[Pairing]:
    """Pair two sequences, in the order of both. Which run is which makes no difference to what is paired."""
    if [step.token for step in ours] <= [step.token for step in theirs]:
        return _Sequences(ours, theirs).paired()
    return [Pairing(b, a, moved) for a, b, moved in _Sequences(theirs, ours).paired()]


def _token(step: Step) -> Hashable:
    return step.token


def _name(step: Step) -> Hashable:
    return step.token[:2]


class _Sequences:
    """Two sequences, and the pairs that have been found so far."""

    def __init__(self, left: Sequence[Step], right: Sequence[Step]) -> None:
        self._left, self._right = left, right
        self._partner: dict[int, int] = {}
        self._moved: set[int] = set()

    def paired(self) -> list[Pairing]:
        """Find all pairs and return them, with what is alone in between."""
        for lefts, rights in self._gaps(self._left, self._right):
            by_name = align([_name(self._left[at]) for at in lefts], [_name(self._right[at]) for at in rights])
            for one, other in by_name:
                if one is not None and other is not None:
                    self._partner[lefts[one]] = rights[other]
        if len(self._partner) < min(len(self._left), len(self._right)):
            self._pair_in_no_order(_token)
            self._pair_in_no_order(_name)
            self._pair_moved()
        return [*self._in_order()]

    def _gaps(self, left: Sequence[Step], right: Sequence[Step]) -> Iterator[tuple[list[int], list[int]]]:
        """Pair what is equal, and yield what lies between two pairs."""
        lefts: list[int] = []
        rights: list[int] = []
        for one, other in align([step.token for step in left], [step.token for step in right]):
            if one is not None and other is not None:
                self._partner[one] = other
                if lefts and rights:
                    yield lefts, rights
                lefts, rights = [], []
            elif one is not None:
                lefts.append(one)
            elif other is not None:
                rights.append(other)
        if lefts and rights:
            yield lefts, rights

    def _loose(self) -> tuple[list[int], list[int]]:
        taken = set(self._partner.values())
        return (
            [at for at in range(len(self._left)) if at not in self._partner],
            [at for at in range(len(self._right)) if at not in taken],
        )

    def _pair_in_no_order(self, key_of: KeyOf) -> None:
        """Pair what is left and crosses no pair: whatever stands between has the rank of one of the two."""
        lefts, rights = self._loose()
        span = _Room([(self._left[one].rank, self._right[other].rank) for one, other in self._partner.items()])
        waiting: dict[Hashable, deque[int]] = {}
        for at in rights:
            waiting.setdefault(key_of(self._right[at]), deque()).append(at)
        for one in lefts:
            queue = waiting.get(key_of(self._left[one]))
            if queue is None:
                continue
            lowest, highest = span.beside(self._left[one].rank)
            while queue and self._right[queue[0]].rank < lowest:
                queue.popleft()
            if queue and self._right[queue[0]].rank <= highest:
                self._partner[one] = queue.popleft()

    def _pair_moved(self) -> None:
        """Pair what is equal and left, in whatever place."""
        lefts, rights = self._loose()
        waiting: dict[Hashable, deque[int]] = {}
        for at in rights:
            waiting.setdefault(_token(self._right[at]), deque()).append(at)
        for one in lefts:
            queue = waiting.get(_token(self._left[one]))
            if queue:
                self._partner[one] = queue.popleft()
                self._moved.add(one)

    def _in_order(self) -> Iterator[Pairing]:
        """Yield all in the order of the left, what is alone on the right before what follows it there."""
        taken = set(self._partner.values())
        loose = deque(at for at in range(len(self._right)) if at not in taken)
        for one, step in enumerate(self._left):
            other = self._partner.get(one)
            if other is None:
                yield Pairing(step, None)
                continue
            while loose and loose[0] < other and one not in self._moved:
                yield Pairing(None, self._right[loose.popleft()])
            yield Pairing(step, self._right[other], one in self._moved)
        yield from (Pairing(None, self._right[at]) for at in loose)


class _Room:
    """Between which ranks on the right something may stand so that it crosses none of the pairs of ranks."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        pairs.sort()
        self._ranks = [left for left, _ in pairs]
        self._before = [*accumulate((right for _, right in pairs), max)]
        self._after = [*accumulate((right for _, right in reversed(pairs)), min)][::-1]

    def beside(self, rank: int) -> tuple[float, float]:
        """Return the lowest and the highest rank on the right for something with this rank on the left."""
        first, last = bisect_left(self._ranks, rank), bisect_right(self._ranks, rank)
        lowest = self._before[first - 1] if first else float("-inf")
        highest = self._after[last] if last < len(self._ranks) else float("inf")
        return lowest, highest
