"""What is hidden and what is left out before anything is stored or compared, and that nothing else is touched."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._canonical import canonical_hash, canonical_json, text_hash
from spangate._redaction import REDACTED, Redaction, without

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))
HIDDEN = "API_KEY OPENAI_API_KEY apiKey X-Api-Key APIKey api-key token pageToken dbPassword Authorization aws_secret"
PLAIN = "max_tokens api_key_count author passwordless q tokens key secretary"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize("key", HIDDEN.split())
def test_a_secret_is_known_by_its_key_however_it_is_written(key: str) -> None:
    assert Redaction().of({"deep": [{key: "hunter2"}]}) == {"deep": [{key: REDACTED}]}


@pytest.mark.parametrize("key", PLAIN.split())
def test_other_keys_are_let_be(key: str) -> None:
    assert Redaction().of({key: "hunter2"}) == {key: "hunter2"}


def test_the_list_is_policy() -> None:
    assert Redaction(["pin"]).of({"PIN": 1, "token": 2}) == {"PIN": REDACTED, "token": 2}
    assert Redaction([]).of({"token": 2}) == {"token": 2}


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: <redacted>' x"),
        ("mysql --password=hunter2 db", "mysql --password=<redacted> db"),
        ("deploy --token 'a b' now", "deploy --token <redacted> now"),
        ("PGPASSWORD=x DB_PASSWORD=x psql", "PGPASSWORD=x DB_PASSWORD=<redacted> psql"),
        ('{"api_key": "abc", "q": 1}', '{"api_key": <redacted>, "q": 1}'),
        ("count every token in it", "count every token in it"),
        ("check src --fix", "check src --fix"),
        ("", ""),
    ],
)
def test_secrets_in_a_text(text: str, hidden: str) -> None:
    assert Redaction().of_text(text) == hidden


@pytest.mark.parametrize("row", VECTORS["argument_digest"])
def test_argument_digests(row: dict[str, Any]) -> None:
    assert canonical_hash(Redaction().of(row["attrs"])) == row["digest"]


@pytest.mark.parametrize("row", VECTORS["payload_sha256"])
def test_payload_hashes(row: dict[str, Any]) -> None:
    assert text_hash(canonical_json(without(row["payload"])), 64) == row["sha256"]


@given(json_values)
def test_hiding_twice_is_hiding_once(value: Any) -> None:
    redaction = Redaction()
    hidden = redaction.of(value)
    assert redaction.of(hidden) == hidden
    assert without(without(value)) == without(value)


@given(st.text(max_size=60))
def test_hiding_in_a_text_twice_is_hiding_once(text: str) -> None:
    redaction = Redaction()
    hidden = redaction.of_text(text)
    assert redaction.of_text(hidden) == hidden


@given(st.text(min_size=1, alphabet="abcXYZ019", max_size=12), json_values)
def test_no_value_under_a_secret_key_is_left(secret: str, value: Any) -> None:
    hidden = Redaction().of({"a": [value], "b": {"My-Password": f"<{secret}>"}})
    assert f"<{secret}>" not in json.dumps(hidden["b"])


def test_what_lies_too_deep_is_hidden() -> None:
    value: Any = "x"
    for _ in range(100):
        value = {"a": value}
    assert "x" not in json.dumps(Redaction().of(value))


def test_a_secret_is_found_behind_a_word_without_end() -> None:
    long = "x" * 100_000
    assert Redaction().of_text(f"{long} {long}_api_key=hunter2 {long}") == f"{long} {long}_api_key={REDACTED} {long}"


@pytest.mark.parametrize("piece", ["x", "-", "ab ", "ab\t", "ab=", 'ab"', "token ", "x" * 63 + " "])
def test_long_texts_cost_their_length(piece: str) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        Redaction().of_text((piece * length)[:length])
        return time.process_time() - start

    assert seconds(400_000) < 40 * max(seconds(40_000), 0.005)
