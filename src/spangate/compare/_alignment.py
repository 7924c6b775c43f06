"""Two sequences side by side: which items of one stand for which of the other, as few as possible standing alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

Pair: TypeAlias = tuple["int | None", "int | None"]
"""Indexes on the left and on the right; None where an item stands alone."""

WHOLE: Final = 1 << 32
"""Where the lengths, without equal ends, multiply to no more than this, the alignment is the best that there is."""
WINDOW: Final = 1 << 13
"""Longer ones are aligned by so many items at once, of which half are settled before the window moves on."""

_KEPT: Final = 1 << 23
"""So many bits of a table are kept at once."""
_FEW: Final = 400
_PATIENCE: Final = 8
"""A search for what little differs gives up beyond so many items, or so many steps for each item."""
_ONES: Final = str.maketrans("01", "10")


def align(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Pair the indexes of equal items, and list what stands alone in between, in the order of both sequences.

    Between two pairs, what stands alone on the left comes before what stands alone on the right.

    The time is linear where no more than some hundred items stand alone. Else it is, without what both have in common
    at their ends, proportional to the product of the lengths, but some thousand steps at once, since rows of the table
    are long whole numbers: a tenth of a second for 20,000 random items on either side, one second for 65,000. Beyond
    that (``WHOLE``) it is linear again, and the best within windows only: what has moved by more than ``WINDOW`` / 2
    places may then stand alone. Memory is linear, whatever the items are.

    Args:
        left: One sequence.
        right: The other.

    Returns:
        Pairs of an index on the left and one on the right, None for an item that stands alone.
    """
    start, stop_left, stop_right = 0, len(left), len(right)
    shorter = min(stop_left, stop_right)
    while start < shorter and left[start] == right[start]:
        start += 1
    while stop_left > start < stop_right and left[stop_left - 1] == right[stop_right - 1]:
        stop_left -= 1
        stop_right -= 1
    matched = [(at, at) for at in range(start)]
    matched += _matches(left[start:stop_left], right[start:stop_right], start)
    matched += zip(range(stop_left, len(left)), range(stop_right, len(right)), strict=True)
    return [*_with_loose(matched, len(left), len(right))]


def _with_loose(matched: Sequence[tuple[int, int]], left: int, right: int) -> Iterator[Pair]:
    """Yield pairs and, between them, the indexes that are in none."""
    at_left = at_right = 0
    for on_left, on_right in matched:
        yield from ((at, None) for at in range(at_left, on_left))
        yield from ((None, at) for at in range(at_right, on_right))
        yield on_left, on_right
        at_left, at_right = on_left + 1, on_right + 1
    yield from ((at, None) for at in range(at_left, left))
    yield from ((None, at) for at in range(at_right, right))


def _matches(left: Sequence[Hashable], right: Sequence[Hashable], start: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of equal items of two sequences that begin at ``start``; in windows if they are very long."""
    numbers: dict[Hashable, int] = {}
    ours = [numbers.setdefault(item, len(numbers)) for item in left]
    theirs = [numbers.setdefault(item, len(numbers)) for item in right]
    at_left = at_right = 0
    while at_left < len(ours) and at_right < len(theirs):
        if ours[at_left] == theirs[at_right]:  # behind a window that has found how far the rest has moved
            yield start + at_left, start + at_right
            at_left, at_right = at_left + 1, at_right + 1
            continue
        if (len(ours) - at_left) * (len(theirs) - at_right) <= WHOLE:
            found = _best(ours[at_left:], theirs[at_right:])
            yield from ((start + at_left + one, start + at_right + other) for one, other in found)
            return
        window = _best(ours[at_left : at_left + WINDOW], theirs[at_right : at_right + WINDOW])
        settled = [pair for pair in window if max(pair) < WINDOW // 2]
        yield from ((start + at_left + one, start + at_right + other) for one, other in settled)
        step = settled[-1] if settled else (WINDOW // 2 - 1, WINDOW // 2 - 1)
        at_left, at_right = at_left + step[0] + 1, at_right + step[1] + 1


def _best(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    """Return a longest common subsequence as pairs of indexes: by Myers' search if little differs, else by a table."""
    few = _searched(left, right) if len(left) * len(right) > _KEPT else None
    return _halved(left, right) if few is None else few


def _searched(left: list[int], right: list[int]) -> list[tuple[int, int]] | None:
    """Return the pairs if no more than ``_FEW`` items stand alone, None if more do, or it would take long to see."""
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    steps = _PATIENCE * (len(left) + len(right))
    for loose in range(_FEW + 1):
        history.append(furthest.copy())
        for diagonal in range(-loose, loose + 1, 2):
            at = before = _entry(furthest, diagonal, loose)
            while at < len(left) and at - diagonal < len(right) and left[at] == right[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            steps -= at - before
            if at >= len(left) and at - diagonal >= len(right):
                return _walked_back(history, len(left), len(right))
        if steps < 0:
            break
    return None


def _entry(furthest: dict[int, int], diagonal: int, loose: int) -> int:
    """Return where a diagonal is entered: from the one above, or from the one below with one more item of the left."""
    if diagonal == -loose or (diagonal != loose and furthest[diagonal - 1] < furthest[diagonal + 1]):
        return furthest[diagonal + 1]
    return furthest[diagonal - 1] + 1


def _walked_back(history: list[dict[int, int]], left: int, right: int) -> list[tuple[int, int]]:
    """Return the pairs on the way that a search has found, given how far it was before each round."""
    found: list[tuple[int, int]] = []
    for loose in range(len(history) - 1, -1, -1):
        diagonal, furthest = left - right, history[loose]
        at = _entry(furthest, diagonal, loose) if loose else 0
        while left > at:
            left, right = left - 1, right - 1
            found.append((left, right))
        from_above = diagonal == -loose or (diagonal != loose and furthest[diagonal - 1] < furthest[diagonal + 1])
        left, right = (left, right - 1) if from_above else (left - 1, right)
    return found[::-1]


def _halved(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    """Return the pairs by Hirschberg's halving of the table of lengths."""
    found: list[tuple[int, int]] = []
    todo = [(0, len(left), 0, len(right))]
    while todo:
        top, bottom, first, last = todo.pop()
        if top == bottom or first == last:
            continue
        rows, columns = left[top:bottom], right[first:last]
        if len(rows) == 1 or len(rows) * len(columns) <= _KEPT:
            found += ((top + one, first + other) for one, other in _traced(rows, columns))
            continue
        middle = len(rows) // 2
        above = _lengths(rows[:middle], columns)
        below = _lengths(rows[middle:][::-1], columns[::-1])
        sums = [one + other for one, other in zip(above, reversed(below), strict=True)]
        cut = sums.index(max(sums))
        todo += (top + middle, bottom, first + cut, last), (top, top + middle, first, first + cut)
    return found


def _rows(rows: Sequence[int], columns: Sequence[int]) -> Iterator[int]:
    """Yield a row of the table of lengths for each item of ``rows``, as bits: 0 where a column adds one.

    This is the bit-parallel algorithm of Crochemore, Iliopoulos, Pinzon and Reid, in numbers as long as ``columns``.
    """
    places: dict[int, list[int]] = {}
    for at, column in enumerate(columns):
        places.setdefault(column, []).append(at)
    wanted = set(rows)
    masks = {column: _mask(found, len(columns)) for column, found in places.items() if column in wanted}
    row = all_ones = (1 << len(columns)) - 1
    for item in rows:
        mask = masks.get(item)
        if mask is not None:
            same = row & mask
            if same:
                row = ((row + same) | (row ^ same)) & all_ones
        yield row


def _mask(places: Sequence[int], length: int) -> int:
    if len(places) == 1:
        return 1 << places[0]
    octets = bytearray(length // 8 + 1)
    for at in places:
        octets[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(octets, "little")


def _lengths(rows: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Return how many pairs all of ``rows`` have with the first 0, 1, 2 … of ``columns``."""
    row = 0
    for row in _rows(rows, columns):  # noqa: B007  the last one
        pass
    bits = f"{row:0{len(columns)}b}".translate(_ONES)[::-1]
    return [0, *accumulate(map(int, bits))]


def _traced(rows: Sequence[int], columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of a part whose table is small enough to keep, from its last corner to its first."""
    table = [*_rows(rows, columns)]
    found: list[tuple[int, int]] = []
    row, column = len(rows) - 1, len(columns) - 1
    while row >= 0 and column >= 0:
        if table[row] >> column & 1:
            column -= 1
        elif row and not table[row - 1] >> column & 1:
            row -= 1
        else:
            found.append((row, column))
            row -= 1
            column -= 1
    return found[::-1]
