"""The fingerprint of a request: golden values, what moves which hash, and what has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spangate._canonical import canonical_hash
from spangate._dialects._base import Request
from spangate._fingerprint import fingerprint
from spangate._records import ABSENT

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors" / "fingerprint.json").read_text(encoding="utf-8"))
TOOL = {"name": "read_file", "parameters": {"type": "object"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def stamps(**fields: Any) -> dict[str, str | float]:
    return fingerprint(Request(**{"messages": [user("hi")], "model": "m", "tools": [], **fields}), source="attributes")


@pytest.mark.parametrize("vector", VECTORS["cases"])
def test_golden_values(vector: dict[str, Any]) -> None:
    given_ = vector["input"]
    request = Request(
        model=given_["model"],
        temperature=given_["temperature"],
        system=given_["system"],
        messages=[user(given_["user"])],
        tools=given_["tools"],
    )
    made = fingerprint(request, source="explicit")
    temperature = made.get("gen_ai.request.temperature")
    assert temperature is None or isinstance(temperature, float)
    as_text = {key: str(value) for key, value in made.items()}
    expected = {
        "fingerprint.source": "explicit",
        "prompt.text_hash": vector["prompt.text_hash"],
        **vector["attributes"],
    }
    assert as_text == expected


# The same prompt, however it was recorded: one system text, one user text.
SAME_PROMPT: dict[str, dict[str, Any]] = {
    "text": {"system": "s", "messages": "u"},
    "one message": {"system": "s", "messages": [user("u")]},
    "system among the messages": {"messages": [{"role": "system", "content": "s"}, user("u")]},
    "content blocks": {"system": "s", "messages": [user([{"type": "text", "text": "u"}])]},
    "parts": {
        "system": [{"type": "text", "content": "s"}],
        "messages": [{"role": "user", "parts": [{"type": "text", "content": "u"}]}],
    },
    "a part without a type": {"system": "s", "messages": [user([{"text": "u"}])]},
    "a field that is not set": {"system": "s", "messages": [{**user("u"), "name": None}]},
}


@pytest.mark.parametrize("recorded", SAME_PROMPT.values(), ids=SAME_PROMPT)
def test_one_system_text_and_one_user_text_are_the_two_texts(recorded: dict[str, Any]) -> None:
    made = stamps(**recorded)
    assert made["prompt.text_hash"] == canonical_hash({"system": "s", "user": "u"})
    assert made["prompt.hash"] == canonical_hash({"system": "s", "user": "u", "tools": []})


WHOLE_LISTS: dict[str, list[Any]] = {
    "two turns": [user("a"), {"role": "assistant", "content": "b"}, user("c")],
    "a picture": [user([{"type": "text", "text": "a"}, {"type": "image"}])],
    "a text with more to it": [user([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])],
    "a name": [{**user("a"), "name": "ann"}],
    "two parts": [user([{"text": "a"}, {"text": "b"}])],
    "a call that says nothing": [user("a"), {"role": "assistant", "tool_calls": [{"id": "1"}]}],
    "another role": [{"role": "developer", "content": "a"}],
    "the user first": [user("a"), {"role": "system", "content": "b"}],
    "no messages at all": ["a", "b"],
}


@pytest.mark.parametrize("messages", WHOLE_LISTS.values(), ids=WHOLE_LISTS)
def test_any_other_prompt_is_its_whole_message_list(messages: list[Any]) -> None:
    assert stamps(messages=messages)["prompt.text_hash"] == canonical_hash({"system": "", "user": messages})


def test_system_text_apart_and_among_the_messages_are_two() -> None:
    both = [{"role": "system", "content": "b"}, user("u")]
    assert stamps(system="a", messages=both)["prompt.text_hash"] == canonical_hash({"system": "a", "user": both})


NO_PROMPT: dict[str, dict[str, Any]] = {
    "nothing recorded": {"messages": ABSENT},
    "null": {"messages": None},
    "no messages": {"messages": []},
    "an empty text": {"messages": ""},
    "the system text alone": {"messages": ABSENT, "system": "s"},
    "parts without their text": {"messages": [{"role": "user", "parts": [{"type": "text"}]}]},
    "one part of many without its text": {"messages": [user("a"), {"role": "tool", "parts": [{"type": "text"}]}]},
    "a user who says nothing": {"messages": [user(None)]},
    "a text that was hidden": {"messages": [user("__REDACTED__")]},
    "a system text that was hidden": {"messages": [user("a")], "system": "__REDACTED__"},
}


@pytest.mark.parametrize("recorded", NO_PROMPT.values(), ids=NO_PROMPT)
def test_without_a_prompt_there_is_no_hash_of_one(recorded: dict[str, Any]) -> None:
    made = stamps(**recorded)
    assert not made.keys() & {"prompt.hash", "prompt.text_hash", "fingerprint.tuple"}
    assert made["tool.schema_hash"] == canonical_hash([])
    assert made["fingerprint.missing_model"] == "false"


def test_tools_that_were_not_recorded_are_not_no_tools() -> None:
    unknown, none = stamps(tools=ABSENT), stamps(tools=[])
    assert "tool.schema_hash" not in unknown
    assert none["tool.schema_hash"] == "4f53cda18c2baa0c"
    assert unknown["prompt.hash"] != none["prompt.hash"]
    assert unknown["prompt.text_hash"] == none["prompt.text_hash"]


deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]

HOSTILE: dict[str, Any] = {
    "NaN": [float("nan")],
    "infinity": {"a": float("inf")},
    "bytes": [b"x"],
    "a set": [{1, 2}],
    "an object": [object()],
    "keys that cannot be sorted": [{1: 1, "a": 2}],
    "nested without end": deep,
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_what_is_not_json_has_no_hash(value: Any) -> None:
    assert not stamps(messages=value).keys() & {"prompt.hash", "prompt.text_hash", "fingerprint.tuple"}
    tools = stamps(tools=value)
    assert not tools.keys() & {"prompt.hash", "tool.schema_hash", "fingerprint.tuple"}
    assert "prompt.text_hash" in tools
    assert "fingerprint.params_hash" not in stamps(params={"seed": value})


def test_half_an_emoji_is_a_prompt_too() -> None:
    assert stamps(messages="\ud83e")["prompt.hash"] != stamps(messages="?")["prompt.hash"]


@pytest.mark.parametrize("model", [ABSENT, None, "", 3, b"m", ["m"], "m\ud83e"])
def test_a_model_that_is_no_name_is_missing(model: Any) -> None:
    made = stamps(model=model)
    assert made["fingerprint.missing_model"] == "true"
    assert "gen_ai.request.model" not in made
    assert "fingerprint.model_source" not in made


def test_a_model_from_the_configuration_is_declared_not_observed() -> None:
    made = fingerprint(Request(messages="u"), source="wire", model_from_config="pinned")
    assert made["gen_ai.request.model"] == "pinned"
    assert made["fingerprint.missing_model"] == "false"
    assert made["fingerprint.model_source"] == "config"


def test_a_model_that_was_asked_for_wins_over_the_configuration() -> None:
    made = fingerprint(Request(messages="u", model="asked"), source="wire", model_from_config="pinned")
    assert made["gen_ai.request.model"] == "asked"
    assert "fingerprint.model_source" not in made


@pytest.mark.parametrize(
    ("recorded", "stamped"),
    [(0, 0.0), (1, 1.0), (-0.0, 0.0), (0.7, 0.7), ("0.7", 0.7), ("1", 1.0)],
)
def test_temperature_is_a_float(recorded: Any, stamped: float) -> None:
    made = stamps(temperature=recorded)
    assert repr(made["gen_ai.request.temperature"]) == repr(stamped)
    assert made["fingerprint.tuple"] == stamps(temperature=stamped)["fingerprint.tuple"]


@pytest.mark.parametrize(
    "recorded", [ABSENT, None, True, "", "hot", "nan", float("nan"), float("inf"), 10**400, [0.7], b"1"]
)
def test_a_temperature_that_is_no_number_is_unknown(recorded: Any) -> None:
    assert "gen_ai.request.temperature" not in stamps(temperature=recorded)


def test_other_parameters_stay_out_of_the_tuple() -> None:
    plain, seeded = stamps(), stamps(params={"seed": 7, "top_p": ABSENT})
    assert "fingerprint.params_hash" not in plain
    assert seeded["fingerprint.params_hash"] == canonical_hash({"seed": 7})
    assert plain["fingerprint.tuple"] == seeded["fingerprint.tuple"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def reordered(value: Any) -> Any:
    """The same value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(json_values, json_values, st.dictionaries(st.text(), json_values, max_size=3))
def test_the_order_of_keys_does_not_matter(messages: Any, tools: Any, params: dict[str, Any]) -> None:
    one = stamps(messages=messages, tools=tools, params=params)
    assert one == stamps(messages=reordered(messages), tools=reordered(tools), params=reordered(params))


@given(st.text(), st.text(), st.text(), st.text())
def test_any_change_of_a_text_moves_the_hash(system: str, text: str, other_system: str, other_text: str) -> None:
    assume((system, text) != (other_system, other_text))
    assume(system or text)
    assume(other_system or other_text)
    one = stamps(system=system, messages=[user(text)])
    other = stamps(system=other_system, messages=[user(other_text)])
    for key in ("prompt.hash", "prompt.text_hash", "fingerprint.tuple"):
        assert one[key] != other[key]


@given(json_values, json_values)
def test_the_hashes_tell_text_from_tools(tools: Any, other: Any) -> None:
    assume(tools is not None)
    assume(other is not None)
    assume(canonical_hash(tools) != canonical_hash(other))
    one, two = stamps(tools=tools), stamps(tools=other)
    assert one["prompt.text_hash"] == two["prompt.text_hash"]
    for key in ("prompt.hash", "tool.schema_hash", "fingerprint.tuple"):
        assert one[key] != two[key]


anything = st.recursive(
    json_values | st.binary() | st.floats() | st.just(ABSENT) | st.frozensets(st.integers()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(anything, anything, anything, anything, anything, st.dictionaries(st.text(), anything, max_size=2))
def test_no_request_raises(model: Any, temperature: Any, system: Any, messages: Any, tools: Any, params: Any) -> None:
    request = Request(model, temperature, system, messages, tools, params)
    made = fingerprint(request, source="attributes")
    assert all(isinstance(value, (str, float)) for value in made.values())
