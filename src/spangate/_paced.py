"""Long walks with rests: whoever hands over many things may have something done every few of them.

A gate goes through a million spans without a thought for other threads, and knows no clock; the thread that it runs in
hands it the spans in such a way that the others get their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeVar, overload

Item = TypeVar("Item")

STRIDE: Final = 32
"""So many items are walked past without a rest: less than a millisecond of work for each of them that takes long."""


class Paced(Sequence[Item]):
    """A sequence that is walked through with rests: ``rest`` is called after every few items.

    The walk itself is C code, as fast as a list's. Slices are lists.
    """

    __slots__ = ("_items", "rest")

    def __init__(self, items: Sequence[Item], rest: Callable[[], None]) -> None:
        self._items = items if isinstance(items, list) else list(items)
        self.rest = rest

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        return self._items[at]

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._strides())

    def _strides(self) -> Iterator[list[Item]]:
        for start in range(0, len(self._items), STRIDE):
            yield self._items[start : start + STRIDE]
            self.rest()


def paced(items: Sequence[Item], rest: Callable[[], None]) -> Sequence[Item]:
    """Return ``items`` to be walked with rests, unless they are few."""
    return Paced(items, rest) if len(items) > STRIDE else items


def paced_like(items: Sequence[Item], other: Sequence[Any]) -> Sequence[Item]:
    """Return ``items`` to be walked with the rests that ``other`` has, if it has any."""
    return paced(items, other.rest) if isinstance(other, Paced) else items
