"""The compact form of a span: what stays, what becomes a hash, and what two hashes over a run tell apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._compact.digest import digest, raw_bytes, schema_of
from spangate._compact.form import compact
from spangate._records import Event, Link, Span
from spangate._redaction import VOLATILE_KEYS
from spangate.archive import tree_hash, tree_schema_hash
from tests.spans import span

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))
SHA = "spangate.payload_sha256."
SCHEMA = "spangate.payload_schema."
RAW = "spangate.payload_raw_sha256."
MESSAGES = "gen_ai.input.messages"
GENAI = {"gen_ai.operation.name": "chat"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=5)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def said(value: Any) -> str:
    found = digest(value)
    assert found is not None
    return found.sha256


def shape(value: Any) -> str:
    found = digest(value)
    assert found is not None
    return found.schema


def chat(attributes: Mapping[str, Any] | None = None, **fields: Any) -> Span:
    return span("generation", "chat m", attributes={**GENAI, **(attributes or {})}, **fields)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(inner) for key, inner in reversed(value.items())}
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value


class TestDigest:
    @pytest.mark.parametrize("row", VECTORS["payload_sha256"], ids=lambda row: row["sha256"][:8])
    def test_golden_values_whether_a_payload_is_a_value_or_its_text(self, row: Any) -> None:
        assert said(row["payload"]) == row["sha256"]
        assert said(json.dumps(row["payload"])) == row["sha256"]
        assert said(json.dumps(row["payload"], ensure_ascii=False, indent=2)) == row["sha256"]

    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("hi", '"hi"'),
            ("", '""'),
            ('{"a": 1', '"{\\"a\\": 1"'),
            ("42", "42"),
            ('{"a": NaN}', '"{\\"a\\": NaN}"'),
            ("[1e999]", '"[1e999]"'),
            ("true story", '"true story"'),
        ],
    )
    def test_a_text_that_is_no_json_counts_as_a_json_string(self, text: str, canonical: str) -> None:
        assert said(text) == sha256(canonical)

    def test_half_a_character_is_hashed(self) -> None:
        assert said("half \ud83e") == hashlib.sha256(b'"half \xed\xa0\xbe"').hexdigest()

    @pytest.mark.parametrize(
        "value",
        [
            b"\x00",
            [b"\x00"],
            float("nan"),
            [float("inf")],
            object(),
            {"a": object()},
            pytest.param("x" * ((4 << 20) + 1), id="too long"),
            pytest.param("[" * 100_000, id="too deep"),
        ],
    )
    def test_what_is_no_json_or_cannot_be_read_has_no_hash(self, value: Any) -> None:
        assert digest(value) is None

    @given(OBJECTS)
    def test_order_of_keys_and_volatile_values_do_not_count(self, value: dict[str, Any]) -> None:
        noisy = {"TS": 1, **value, "nested": [{"request_id": "r1"}]}
        other = {"ts": "later", **value, "nested": [{"request_id": ["r2"]}]}
        assert digest(json.dumps(noisy)) == digest(reversed_keys(other))

    @given(JSON, JSON)
    def test_shapes_are_of_types_not_of_values(self, one: Any, other: Any) -> None:
        def types(value: Any) -> str:
            return json.dumps(schema_of(value), sort_keys=True)

        volatile = any(key in json.dumps([one, other]).lower() for key in VOLATILE_KEYS)
        if not volatile:
            assert (shape(one) == shape(other)) == (types(one) == types(other))

    @pytest.mark.parametrize(
        ("value", "found"),
        [
            ({"b": 1, "a": "x"}, {"a": "string", "b": "number"}),
            ([1, 2.5, "x", None, True], ["boolean", "null", "number", "string"]),
            ([{"id": 1}, {"id": 2}], [{"id": "number"}]),
            ([], []),
            ({"deep": {"er": [[False]]}}, {"deep": {"er": [["boolean"]]}}),
        ],
    )
    def test_the_shape_of_a_value(self, value: Any, found: Any) -> None:
        assert schema_of(value) == found

    @pytest.mark.parametrize(
        ("value", "content"),
        [
            ('{"b":1, "a":2}', b'{"b":1, "a":2}'),
            (b"\x00\xff", b"\x00\xff"),
            (("é", 1), '["é",1]'.encode()),
            ({"ts": 1}, b'{"ts":1}'),
            (object(), None),
        ],
    )
    def test_the_raw_bytes_are_those_that_were_recorded(self, value: Any, content: bytes | None) -> None:
        assert raw_bytes(value) == content


class TestForm:
    def test_payloads_become_hashes_and_all_else_stays(self) -> None:
        given_ = chat(
            {MESSAGES: '[{"role": "user"}]', "gen_ai.usage.input_tokens": 3, "mine": "stays", "tags": ("a", "b")},
            links=[Link(1, 2, {"k": "v"})],
            status="OK",
        )
        made = compact(given_)
        assert made.attributes == {
            **GENAI,
            "gen_ai.usage.input_tokens": 3,
            "mine": "stays",
            "tags": ("a", "b"),
            SHA + MESSAGES: sha256('[{"role":"user"}]'),
            SCHEMA + MESSAGES: shape([{"role": ""}]),
        }
        kept = ("trace_id", "span_id", "parent_id", "name", "start_ns", "end_ns", "kind", "status", "links", "role")
        assert [getattr(made, name) for name in kept] == [getattr(given_, name) for name in kept]

    def test_the_span_that_was_judged_is_not_touched(self) -> None:
        given_ = chat({MESSAGES: "hi"}, events=[Event("exception", {"exception.message": "no"})])
        compact(given_)
        assert given_.attributes == {**GENAI, MESSAGES: "hi"}
        assert given_.events[0].attributes == {"exception.message": "no"}

    def test_a_span_without_payloads_is_its_own_compact_form(self) -> None:
        bare = chat({"a": 1}, events=[Event("started", {"n": 1})])
        assert compact(bare) is bare

    def test_the_compact_form_of_a_compact_form_is_itself(self) -> None:
        made = compact(chat({MESSAGES: "hi"}, status="ERROR", status_description="ValueError: hi"))
        assert compact(made) is made

    def test_flattened_messages_are_one_payload(self) -> None:
        flat = {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "hi",
            "llm.input_messages.1.message.role": "assistant",
        }
        made = compact(span("generation", attributes=flat))
        whole = [{"message": {"role": "user", "content": "hi"}}, {"message": {"role": "assistant"}}]
        assert made.attributes == {
            "openinference.span.kind": "LLM",
            SHA + "llm.input_messages": said(whole),
            SCHEMA + "llm.input_messages": shape(whole),
        }

    def test_what_stands_under_a_key_and_below_it_is_one_payload(self) -> None:
        made = compact(chat({"gen_ai.prompt": "hi", "gen_ai.prompt.0.content": "ho"}))
        assert made.attributes[SHA + "gen_ai.prompt"] == said(["hi", [{"content": "ho"}]])

    @pytest.mark.parametrize("key", [MESSAGES, "input.value", "traceloop.entity.input", "tool.parameters"])
    def test_the_keys_of_one_convention_are_payload_wherever_they_stand(self, key: str) -> None:
        assert key not in compact(span("other", "work", attributes={key: "hi"})).attributes

    def test_a_word_that_anybody_might_use_is_payload_only_where_its_convention_says_so(self) -> None:
        mine = span(attributes={"content": "mine"}, events=[Event("mine", {"message": "mine"})])
        assert compact(mine) is mine
        told = compact(chat(events=[Event("gen_ai.user.message", {"content": "secret", "role": "user"})]))
        assert told.events[0].attributes == {
            "role": "user",
            SHA + "content": said("secret"),
            SCHEMA + "content": shape("secret"),
        }

    def test_texts_of_errors_are_hashed_and_their_types_stay(self) -> None:
        raised = Event("exception", {"exception.type": "a.B", "exception.message": "m", "exception.stacktrace": "s"}, 7)
        made = compact(span(events=[raised], status="ERROR", status_description="B: m"))
        assert made.events == [
            Event(
                "exception",
                {
                    "exception.type": "a.B",
                    SHA + "exception.message": said("m"),
                    SHA + "exception.stacktrace": said("s"),
                },
                7,
            )
        ]
        assert made.status_description == "a.B"
        assert made.attributes == {SHA + "status_description": said("B: m")}

    @pytest.mark.parametrize(
        ("attributes", "described", "kept"),
        [
            ({}, "ValueError: the city of Oslo", "ValueError"),
            ({}, "lib.APITimeout('Request to Oslo')Traceback", "lib.APITimeout"),
            ({}, "ValueError", "ValueError"),
            ({}, "Oslo: no such city", ""),
            ({"error.type": "timeout"}, "after 3 s in Oslo", "timeout"),
            ({"error.type": "a text about Oslo"}, "Oslo", ""),
        ],
    )
    def test_of_a_status_only_the_type_of_an_error_stays(
        self, attributes: dict[str, Any], described: str, kept: str
    ) -> None:
        made = compact(span(attributes=attributes, status="ERROR", status_description=described))
        assert made.status_description == kept

    def test_what_cannot_be_hashed_goes_too_and_is_named(self) -> None:
        made = compact(chat({MESSAGES: b"\x00", "gen_ai.output.messages": "hi"}))
        assert made.attributes["spangate.payloads_unhashed"] == [MESSAGES]
        assert MESSAGES not in made.attributes
        assert SHA + MESSAGES not in made.attributes

    def test_an_outcome_that_only_a_payload_told_is_written_down(self) -> None:
        answer = '{"type": "tool", "data": {"status": "error"}}'
        tool = span(
            "tool",
            scope="openinference.instrumentation.langchain",
            attributes={"openinference.span.kind": "TOOL", "output.value": answer},
        )
        assert compact(tool).attributes["spangate.outcome"] == "error"

    def test_raw_payloads_are_handed_over_with_the_hash_of_their_bytes(self) -> None:
        kept: dict[str, bytes] = {}
        made = compact(chat({MESSAGES: '{"b":1,"a":2}'}), kept.__setitem__)
        raw = sha256('{"b":1,"a":2}')
        assert made.attributes[RAW + MESSAGES] == raw
        assert kept == {raw: b'{"b":1,"a":2}'}

    @given(st.dictionaries(st.text(max_size=12), st.text(max_size=12) | st.integers() | st.binary(max_size=4)))
    def test_no_key_of_what_leaves_is_a_namespace_of_another(self, more: dict[str, Any]) -> None:
        written = set(compact(chat({**more, MESSAGES: "hi", "gen_ai.prompt.0.content": "x"})).attributes)
        ours = {key for key in written if key.startswith("spangate.")}
        assert not [key for key in ours if any(other.startswith(f"{key}.") for other in written)]


def run(**changed: Any) -> list[Span]:
    """Make a run: an agent, two tools side by side, a model call in the second tool. ``changed`` replaces fields."""
    root = span("agent", "invoke_agent cook", end=10.0)
    first = span("tool", "execute_tool a", parent=root, attributes={"gen_ai.tool.call.arguments": '{"q": "x"}'})
    second = span("tool", "execute_tool b", parent=root, attributes={"gen_ai.tool.call.result": '{"n": 1, "ts": 5}'})
    below = chat({MESSAGES: '[{"content": "hi", "role": "user"}]'}, parent=second)
    made = {"root": root, "first": first, "second": second, "below": below}
    return [replace(one, **changed.get(name, {})) for name, one in made.items()]


class TestTreeHash:
    @given(st.integers(1, 1 << 60), st.integers(0, 1 << 60), st.permutations(range(4)))
    def test_ids_times_and_order_do_not_count(self, shift: int, later: int, order: list[int]) -> None:
        spans = run()
        moved = [
            replace(
                one,
                trace_id=one.trace_id ^ shift,
                span_id=one.span_id ^ shift,
                parent_id=None if one.parent_id is None else one.parent_id ^ shift,
                start_ns=one.start_ns + later * number,
                end_ns=(one.end_ns or 0) + later * number,
            )
            for number, one in enumerate(spans)
        ]
        assert tree_hash([moved[place] for place in order]) == tree_hash(spans)
        assert tree_schema_hash([moved[place] for place in order]) == tree_schema_hash(spans)

    def test_a_compact_run_has_the_hashes_of_the_whole_one(self) -> None:
        forms = [compact(one) for one in run()]
        assert (tree_hash(forms), tree_schema_hash(forms)) == (tree_hash(run()), tree_schema_hash(run()))

    @pytest.mark.parametrize(
        ("name", "attributes"),
        [
            ("below", {**GENAI, MESSAGES: '[{"role": "user", "content": "hi"}]'}),
            ("below", {**GENAI, MESSAGES: [{"role": "user", "content": "hi"}]}),
            ("second", {"gen_ai.tool.call.result": '{"ts": "never", "n": 1}'}),
            ("second", {"gen_ai.tool.call.result": '{"n": 1, "trace_id": {}}'}),
            ("second", {"gen_ai.tool.call.result": '{"n": 1}', "mine": 5}),
        ],
        ids=["order of keys", "a value for its text", "a volatile value", "a volatile key", "what is no payload"],
    )
    def test_what_does_not_count(self, name: str, attributes: dict[str, Any]) -> None:
        other = run(**{name: {"attributes": attributes}})
        assert (tree_hash(other), tree_schema_hash(other)) == (tree_hash(run()), tree_schema_hash(run()))

    def test_texts_of_errors_do_not_count_but_that_there_was_one(self) -> None:
        def failed(text: str) -> list[Span]:
            event = Event("exception", {"exception.type": "E", "exception.stacktrace": text})
            return run(first={"status": "ERROR", "status_description": text, "events": [event]})

        assert tree_hash(failed("at /home/a")) == tree_hash(failed("at /home/b"))
        assert tree_schema_hash(failed("at /home/a")) != tree_schema_hash(run())

    @pytest.mark.parametrize(
        "changed",
        [
            {"first": {"attributes": {"gen_ai.tool.call.arguments": '{"q": "y"}'}}},
            {"second": {"attributes": {"gen_ai.tool.call.result": '{"n": 1.5}'}}},
            {"below": {"attributes": {**GENAI, MESSAGES: '[{"content": "ho", "role": "system"}]'}}},
        ],
    )
    def test_other_data_change_the_hash_and_not_the_schema(self, changed: dict[str, Any]) -> None:
        other = run(**changed)
        assert tree_hash(other) != tree_hash(run())
        assert tree_schema_hash(other) == tree_schema_hash(run())

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param({"first": {"name": "execute_tool c"}}, id="a name"),
            pytest.param({"first": {"attributes": {"gen_ai.tool.call.arguments": '{"q": 1}'}}}, id="a type"),
            pytest.param({"first": {"attributes": {"gen_ai.tool.call.arguments": '{"p": "x"}'}}}, id="a key"),
            pytest.param({"first": {"attributes": {}}}, id="a payload is gone"),
            pytest.param({"first": {"status": "ERROR"}}, id="an outcome"),
        ],
    )
    def test_another_contract_changes_both(self, changed: dict[str, Any]) -> None:
        other = run(**changed)
        assert tree_hash(other) != tree_hash(run())
        assert tree_schema_hash(other) != tree_schema_hash(run())

    def test_another_parent_changes_both(self) -> None:
        root, first, second, below = run()
        other = [root, first, second, replace(below, parent_id=first.span_id)]
        assert tree_hash(other) != tree_hash(run())
        assert tree_schema_hash(other) != tree_schema_hash(run())

    def test_a_parent_of_the_same_name_is_another_all_the_same(self) -> None:
        root = span("agent", "a", end=9.0)
        twins = [span("tool", "t", parent=root), span("tool", "t", parent=root)]
        below = [span("other", "x", parent=twins[0]), span("other", "y", parent=twins[1])]
        together = [below[0], replace(below[1], parent_id=twins[0].span_id)]
        assert tree_schema_hash([root, *twins, *below]) != tree_schema_hash([root, *twins, *together])

    def test_a_call_that_is_made_twice_counts_twice(self) -> None:
        root, first, *_ = run()
        assert tree_hash([root, first]) != tree_hash([root, first, replace(first, span_id=1 << 60)])

    def test_a_circle_of_parents_is_hashed_as_well(self) -> None:
        one, two = span("tool", "a"), span("tool", "b")
        circle = [replace(one, parent_id=two.span_id), replace(two, parent_id=one.span_id)]
        assert tree_hash(circle) == tree_hash(circle[::-1])
        assert tree_hash(circle) != tree_hash([circle[0], replace(circle[1], name="c")])

    def test_a_deep_run_is_hashed(self) -> None:
        chain = [span("agent", "a")]
        for _ in range(5000):
            chain.append(span("workflow", "w", parent=chain[-1]))
        assert len(tree_hash(chain)) == 16
