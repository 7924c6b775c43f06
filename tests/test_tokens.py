"""Tokens: one span's counts made into whole numbers, and what vendors count beside them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._dialects._base import TokenCounts
from spangate._records import ABSENT
from spangate._usage.tokens import MAX_COUNT, UNSAID, read, whole_number

COUNTS = st.integers(0, MAX_COUNT)
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
    st.just(ABSENT),
    st.sampled_from(["1e3", "1_000", "٣", "0x10", "1.5", " 7 ", "+7", "7.", "-", "", "9" * 5000, "\ud83e", 10**400]),
)


@pytest.mark.parametrize(
    ("value", "number", "how"),
    [
        (0, 0, None),
        (128, 128, None),
        ("128", 128, "coerced"),
        (" 128\n", 128, "coerced"),
        ("+128", 128, "coerced"),
        ("128.00", 128, "coerced"),
        (12.0, 12, "coerced"),
        (-0.0, 0, "coerced"),
        (True, None, "invalid"),
        (False, None, "invalid"),
        (12.5, None, "invalid"),
        ("12.5", None, "invalid"),
        ("1_000", None, "invalid"),
        ("1e3", None, "invalid"),
        ("٣", None, "invalid"),
        ("", None, "invalid"),
        ("many", None, "invalid"),
        (b"12", None, "invalid"),
        ([12], None, "invalid"),
        (MAX_COUNT, MAX_COUNT, None),
        (MAX_COUNT + 1, None, "invalid"),
        ("9" * 20, None, "invalid"),
        ("9" * 5000, None, "invalid"),
        (1e300, None, "invalid"),
        (-1, None, "negative"),
        (-1.0, None, "negative"),
        (-1.5, None, "negative"),
        ("-1", None, "negative"),
        (math.nan, None, "nonfinite"),
        (math.inf, None, "nonfinite"),
        (-math.inf, None, "nonfinite"),
        ("NaN", None, "nonfinite"),
        ("-Infinity", None, "nonfinite"),
    ],
)
def test_what_a_value_plainly_means(value: Any, number: int | None, how: str | None) -> None:
    assert whole_number(value) == (number, how)


@given(COUNTS)
def test_a_whole_number_means_the_same_in_every_shape(number: int) -> None:
    assert whole_number(number) == (number, None)
    assert whole_number(str(number)) == (number, "coerced")
    assert whole_number(float(number)) == (number, "coerced")
    assert whole_number(f"{number}.0") == (number, "coerced")


@given(ANYTHING)
def test_a_value_is_a_count_or_it_is_refused(value: Any) -> None:
    number, how = whole_number(value)
    assert (number is None) == (how in {"negative", "nonfinite", "invalid"})
    assert number is None or 0 <= number <= MAX_COUNT


@given(st.tuples(*[ANYTHING] * 6))
def test_no_counts_raise_and_none_come_out_smaller_than_recorded(values: tuple[Any, ...]) -> None:
    reading = read(TokenCounts(*values))
    for recorded, counted in zip(reading.recorded, reading.counted, strict=True):
        assert (recorded is None) == (counted is None)
        assert recorded is None or counted is None or recorded <= counted
    assert all(flaw.detail.isascii() and len(flaw.detail) < 120 for flaw in reading.flaws)


@given(COUNTS, COUNTS)
def test_plain_counts_are_what_they_are(asked: int, answered: int) -> None:
    reading = read(TokenCounts(asked, answered))
    assert reading.counted == reading.recorded == (asked, answered)
    assert reading.flaws == ()


@pytest.mark.parametrize(
    ("counts", "counted"),
    [
        pytest.param({"input": 10, "cached": 1000, "cache_written": 200}, (1210, None), id="a cache outside the input"),
        pytest.param({"input": 117, "cached": 64, "cache_written": 7}, (117, None), id="a cache inside the input"),
        pytest.param({"input": 64, "cached": 64}, (64, None), id="all of it cached"),
        pytest.param({"input": 0, "cached": 1000}, (1000, None), id="nothing but the cache"),
        pytest.param({"input": "10", "cached": "1000"}, (1010, None), id="counts as text"),
        pytest.param({"input": 10, "cached": math.nan, "cache_written": True}, (10, None), id="no cache count"),
        pytest.param({"input": 10, "cached": -1000}, (10, None), id="a negative cache count"),
        pytest.param({"output": 20, "cached": 1000}, (None, 20), id="a cache of an unknown input"),
        pytest.param(
            {"input": 324, "output": 1364, "reasoning": 495, "total": 2183},
            (324, 1859),
            id="reasoning outside, by the total",
        ),
        pytest.param(
            {"input": 324, "output": 1364, "reasoning": 495, "total": 1688},
            (324, 1364),
            id="reasoning inside, by the total",
        ),
        pytest.param({"input": 324, "output": 1364, "reasoning": 495}, (324, 1364), id="reasoning without a total"),
        pytest.param(
            {"input": 324, "output": 1364, "reasoning": 495, "total": math.nan}, (324, 1364), id="a total that is none"
        ),
        pytest.param(
            {"input": 10, "output": 5, "cached": 100, "reasoning": 7, "total": 122},
            (110, 12),
            id="both, and the total has both",
        ),
        pytest.param(
            {"input": 10, "output": 5, "cached": 100, "reasoning": 7, "total": 22},
            (110, 12),
            id="both, and the total has one",
        ),
    ],
)
def test_what_vendors_count_beside_is_added_where_arithmetic_proves_it(counts: Any, counted: Any) -> None:
    assert read(TokenCounts(**counts)).counted == counted


@pytest.mark.parametrize("absent", [ABSENT, None])
def test_absent_is_not_zero_and_no_flaw(absent: Any) -> None:
    assert read(TokenCounts(absent, absent, total=7)) is UNSAID
    reading = read(TokenCounts(absent, 3))
    assert (reading.counted, reading.said, list(reading.flaws)) == ((None, 3), (False, True), [])


def test_a_flaw_says_which_side_and_repeats_little_of_the_value() -> None:
    reading = read(TokenCounts("128", "secret " * 1000))
    assert reading.counted == (128, None)
    assert [(flaw.code, flaw.detail) for flaw in reading.flaws] == [
        ("budget.usage_coerced", "input tokens: '128' taken as 128"),
        ("budget.usage_invalid", "output tokens: 'secret secret secret' is no count"),
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**400, "an enormous number"),
        ({"a": 1}, "a dict"),
        (True, "True"),
        (-3, "-3"),
        (math.nan, "nan"),
        ("\ud83e", "'\\ud83e'"),
    ],
)
def test_a_foreign_value_is_shown_in_a_few_clean_characters(value: Any, shown: str) -> None:
    assert read(TokenCounts(value, 1)).flaws[0].detail == f"input tokens: {shown} is no count"
