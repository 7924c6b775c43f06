"""Payload: what values weigh in UTF-8, and what is wrong with a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._payload import (
    has_lone_surrogate,
    is_cut_json,
    mapping_bytes,
    recorded_bytes,
    span_bytes,
    text_bytes,
    value_bytes,
)
from spangate._records import Event
from tests.spans import span

HALF = "\ud83e"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
JSON_OBJECTS = st.dictionaries(st.text(max_size=3), JSON_VALUES, min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 2),
        ("日本", 6),
        ("🦊", 4),
        (HALF, 3),
        (True, 1),
        (7, 8),
        (0.5, 8),
        (float("nan"), 8),
        (None, 0),
        (b"\x00\xff", 2),
        (("ab", "é"), 4),
        ([], 0),
        ({"k": "vv"}, 3),
        ([["a", ["b"]], {"c": ("d",)}], 4),
        (object(), 8),
    ],
)
def test_what_a_value_weighs(value: Any, weight: int) -> None:
    assert value_bytes(value) == weight


@given(st.text())
def test_a_text_weighs_what_its_utf8_weighs(text: str) -> None:
    assert text_bytes(text) == len(text.encode())


@given(st.text(), st.text())
def test_two_texts_weigh_what_they_weigh_together(one: str, other: str) -> None:
    assert text_bytes(one) + text_bytes(other) == text_bytes(one + other)


def test_a_huge_text_is_weighed_whole() -> None:
    assert text_bytes("日" * (1 << 20)) == 3 << 20


def test_a_span_weighs_its_attributes_and_its_events_with_their_keys() -> None:
    event = Event("choice", {"message": "ok"})
    assert mapping_bytes({"model": "m", "schlüssel": 1}) == 5 + 1 + 10 + 8
    assert span_bytes(span(attributes={"model": "m"}, events=[event])) == 6 + (6 + 7 + 2)


def test_a_value_that_holds_itself_has_an_end() -> None:
    endless: list[Any] = ["a"]
    endless.append(endless)
    assert value_bytes(endless) > 0
    assert recorded_bytes(endless) is None


@pytest.mark.parametrize(
    ("result", "weight"),
    [
        ("sunny", 5),
        ("", 0),
        (42, 2),
        (True, 4),
        (None, 4),
        ({"città": ["Roma"]}, len('{"città":["Roma"]}'.encode())),
        (b"abc", 3),
        (object(), None),
        ({1, 2}, None),
        ("half " + HALF, 8),
    ],
)
def test_a_recorded_result_weighs_its_text_or_its_json(result: Any, weight: int | None) -> None:
    assert recorded_bytes(result) == weight


@pytest.mark.parametrize("text", [HALF, "a" + HALF, HALF + "é", "\udc00\ud800", "x" * (1 << 18) + HALF])
def test_half_a_character_is_found(text: str) -> None:
    assert has_lone_surrogate(text)


@given(st.text())
def test_what_utf8_can_write_is_whole(text: str) -> None:
    assert not has_lone_surrogate(text)


CUT = [
    '{"city": "Par',
    '{"city": "Par\\',
    '{"city": "Par\\u00',
    '{"city"',
    '{"city":',
    '{"city": "Paris",',
    '{"ok": tru',
    '{"n": -',
    '{"n": 1.',
    '{"n": -Infinit',
    '[{"role": "user"}',
    '[{"role": "user"}, ',
    '["a", "b"',
    "[[1, 2], [3",
    '{ "indented": 1, ',
    '[\n  {\n    "role": "us',
    '{"n": 1  ',
    '{"big": "' + "x" * (1 << 18),
]
NOT_CUT = [
    "",
    "{",
    "plain text",
    "{}",
    "[]",
    '{"city": "Paris"}',
    '{"city": "Paris"}\n',
    '[{"role": "user"}]  ',
    "[INFO] started",
    "{name} said hello",
    "{'city': 'Par",
    "[1, 2, 3",  # numbers may be a person's list as well
    '{"a": 1} and then some words about it',
    '["a"] is what it said, and it went on for a while',
    "[[wiki link]] and then some words about it",
    '{"a": 1}\n{"b": 2}\n',
    "[" * 100_000,
    '{"n": ' + "9" * 5000,
]


@pytest.mark.parametrize("text", CUT)
def test_json_that_was_cut_is_told(text: str) -> None:
    assert is_cut_json(text)


@pytest.mark.parametrize("text", NOT_CUT)
def test_what_only_looks_like_cut_json_is_left_alone(text: str) -> None:
    assert not is_cut_json(text)


@given(JSON_OBJECTS | st.lists(JSON_VALUES, min_size=1, max_size=3))
def test_whole_json_is_never_cut(value: Any) -> None:
    assert not is_cut_json(json.dumps(value))
    assert not is_cut_json(json.dumps(value, indent=2, ensure_ascii=False))


@given(JSON_OBJECTS, st.data())
def test_json_is_cut_wherever_the_knife_falls_but_behind_an_inner_bracket(value: Any, data: st.DataObject) -> None:
    whole = json.dumps(value)
    cut = whole[: data.draw(st.integers(2, len(whole) - 1))]
    assert is_cut_json(cut) or cut.rstrip().endswith("}")
