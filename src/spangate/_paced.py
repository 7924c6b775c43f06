"""Long walks with rests: whoever hands over many things may have something done every few of them.

A gate goes through a million spans without a thought for other threads, and knows no clock; the thread that it runs in
hands it the spans in such a way that the others get their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Final, TypeVar, overload

Item = TypeVar("Item")

STRIDE: Final = 32
"""So many items are walked past without a rest: less than a millisecond of work for each of them that takes long."""


_FREED: Final = 256
"""So many items are freed without a rest."""


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


def strides(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield ``items`` in lists of a few."""
    left = iter(items)
    while stride := list(islice(left, STRIDE)):
        yield stride


def resting(items: Iterable[Item], rest: Callable[[], None]) -> Iterator[Item]:
    """Yield ``items``, and call ``rest`` after every few of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % STRIDE == 0:
            rest()


def take_apart(container: object, rest: Callable[[], None]) -> None:
    """Empty a container, and large ones in it, with rests: freeing very much at once keeps others out for long."""
    todo = [container]
    while todo:
        top = todo[-1]
        top = top._items if isinstance(top, Paced) else top  # noqa: SLF001  its own module
        if not isinstance(top, (dict, list)) or not top:
            todo.pop()
            continue
        freed: list[Any] = []
        if isinstance(top, dict):
            with suppress(KeyError):  # a hook that comes late may have taken back what it put there
                freed += [top.popitem()[1] for _ in range(min(_FREED, len(top)))]
        else:
            freed = top[-_FREED:]
            del top[-_FREED:]
        todo += [item for item in freed if isinstance(item, (dict, list, Paced)) and len(item) > _FREED]
        del freed
        rest()


def paced(items: Sequence[Item], rest: Callable[[], None]) -> Sequence[Item]:
    """Return ``items`` to be walked with rests, unless they are few."""
    return Paced(items, rest) if len(items) > STRIDE else items


def owned(items: Sequence[Item]) -> list[Item]:
    """Return the list behind ``items``, to be changed by whoever takes it over; a new one if there is none."""
    known = items._items if isinstance(items, Paced) else items  # noqa: SLF001  its own module
    return known if isinstance(known, list) else list(known)


def paced_like(items: Sequence[Item], other: Sequence[Any]) -> Sequence[Item]:
    """Return ``items`` to be walked with the rests that ``other`` has, if it has any."""
    return paced(items, other.rest) if isinstance(other, Paced) else items
