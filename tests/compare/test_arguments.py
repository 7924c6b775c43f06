"""The digest of arguments: golden values, and the short way for flat ones says what the long way does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._attempts import argument_text
from spangate._canonical import text_hash
from spangate._redaction import Redaction, without
from spangate.compare._arguments import Arguments
from spangate.compare._rules import Rules

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))
keys = st.sampled_from(["q", "API_KEY", "apiKey", "ts", "Request_Id", "limit", "token_count"])
flat = st.dictionaries(keys, st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20))


def digest(value: Any) -> str | None:
    found = Arguments(Rules()).digest(value, ())
    return None if found is None else found.text


@pytest.mark.parametrize("row", VECTORS["argument_digest"])
def test_golden_values(row: dict[str, Any]) -> None:
    assert digest(row["attrs"]) == digest(json.dumps(row["attrs"])) == row["digest"]


@given(flat)
def test_the_short_way_says_what_the_long_way_does(value: dict[str, Any]) -> None:
    try:
        long = text_hash(argument_text(without(value), Redaction()))
    except ValueError:  # NaN and infinity are no JSON
        long = None
    assert digest(value) == long


@pytest.mark.parametrize("value", [{"q": float("nan")}, {"q": {"deep": b"bytes"}}, {1: 2, "a": 3}])
def test_what_is_no_json_has_none(value: Any) -> None:
    assert digest(value) is None


def test_a_text_is_its_own_argument() -> None:
    assert digest("ls -l") == digest("ls -l") != digest("ls -a")
    assert digest("curl --token one") == digest("curl --token two")
