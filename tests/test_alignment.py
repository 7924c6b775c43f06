"""Two sequences are aligned with as few items alone as possible, and in bounded time whatever they hold."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate.compare import _alignment
from spangate.compare._alignment import align

letters = st.lists(st.sampled_from("abcd"), max_size=40)
MANY = 40_000
BOUND_S = 10
"""What takes half a second here; a table gone through cell by cell would take an hour."""


def longest(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many items two sequences can have in common, from the table in every textbook."""
    row = [0] * (len(right) + 1)
    for item in left:
        before, row = row, [0]
        for at, other in enumerate(right):
            row.append(before[at] + 1 if item == other else max(row[at], before[at + 1]))
    return row[-1]


def check(left: Sequence[object], right: Sequence[object]) -> int:
    """See that every index is there once, in order, and paired with an equal one. Returns how many are paired."""
    pairs = align(left, right)
    assert [one for one, _ in pairs if one is not None] == [*range(len(left))]
    assert [other for _, other in pairs if other is not None] == [*range(len(right))]
    paired = [(one, other) for one, other in pairs if one is not None and other is not None]
    assert all(left[one] == right[other] for one, other in paired)
    return len(paired)


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("", "", []),
        ("ab", "ab", [(0, 0), (1, 1)]),
        ("ab", "", [(0, None), (1, None)]),
        ("ar", "arr", [(0, 0), (1, 1), (None, 2)]),
        ("arb", "arrb", [(0, 0), (1, 1), (None, 2), (2, 3)]),
        ("axb", "ayb", [(0, 0), (1, None), (None, 1), (2, 2)]),
        ("xrry", "zrw", [(0, None), (None, 0), (1, 1), (2, None), (3, None), (None, 2)]),
    ],
)
def test_what_it_answers(left: str, right: str, pairs: object) -> None:
    assert align(left, right) == pairs


@given(letters, letters)
def test_it_is_the_best_that_there_is(left: list[str], right: list[str]) -> None:
    assert check(left, right) == longest(left, right)


@pytest.mark.parametrize(("few", "patience"), [(0, 8), (3, 8), (80, 8), (80, 0)])
@given(letters, letters)
def test_it_is_the_best_where_a_table_is_too_large_to_be_kept(
    few: int, patience: int, left: list[str], right: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_alignment, "_KEPT", 8)
        patch.setattr(_alignment, "_FEW", few)
        patch.setattr(_alignment, "_PATIENCE", patience)
        assert check(left, right) == longest(left, right)


@given(letters, letters)
def test_in_windows_it_is_an_alignment_all_the_same(left: list[str], right: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_alignment, "WHOLE", 16)
        patch.setattr(_alignment, "WINDOW", 6)
        assert check(left, right) <= longest(left, right)


@given(st.lists(st.integers(), unique=True, min_size=20, max_size=60), st.integers(0, 2))
def test_in_windows_it_follows_what_has_moved_a_little(items: list[int], moved: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_alignment, "WHOLE", 16)
        patch.setattr(_alignment, "WINDOW", 8)
        assert check(items, [*"xy"[:moved], *items, "end"]) == len(items)


@pytest.mark.parametrize("kind", ["equal", "different", "reversed", "random", "shuffled"])
def test_nothing_takes_long(kind: str) -> None:
    source = random.Random(7)  # noqa: S311  no secret
    items = [source.randrange(5) if kind == "random" else at for at in range(MANY)]
    others: dict[str, Sequence[object]] = {
        "equal": ["x", *["a"] * MANY, "y"],
        "different": [-1 - at for at in range(MANY)],
        "reversed": items[::-1],
        "random": [source.randrange(5) for _ in range(MANY)],
        "shuffled": source.sample(items, MANY),
    }
    began = time.process_time()
    check(["a"] * MANY if kind == "equal" else items, others[kind])
    assert time.process_time() - began < BOUND_S
