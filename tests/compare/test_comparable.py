"""Whether two runs may be compared: by what each agent asked the model first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from spangate import _keys as keys
from spangate._records import Span
from spangate._run import Run
from spangate.cli._group import spangate
from spangate.compare import compare
from tests import pairs
from tests.otlp import otlp_line, otlp_span
from tests.spans import run_of, span

TOOL = {"type": "function", "name": "search", "parameters": {"type": "object"}}


def asked(text: str | None = "hi", **more: Any) -> dict[str, Any]:
    """Return the attributes of a model call, as OpenTelemetry's conventions have them."""
    made: dict[str, Any] = {"model": "small", "tools": [TOOL], "temperature": 0.0, **more}
    message = {"role": "user", "parts": [{"type": "text", "content": text}]}
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": None if text is None else json.dumps([message]),
        "gen_ai.request.model": made["model"],
        "gen_ai.tool.definitions": None if made["tools"] is None else json.dumps(made["tools"]),
        "gen_ai.request.temperature": made["temperature"],
        "gen_ai.request.top_p": made.get("top_p"),
        "generation_id": made.get("generation_id"),
    }
    return {key: value for key, value in found.items() if value is not None}


def agent(*calls: Mapping[str, Any], name: str = "agent", above: Span | None = None, start: float = 0.0) -> list[Span]:
    """Make an agent with model calls one after the other, and a tool after each but the last."""
    root = span("agent", name, parent=above, start=start, end=start + 100.0)
    spans = [root]
    for number, attributes in enumerate(calls):
        at = start + 2 * number
        spans.append(span("generation", "chat small", parent=root, start=at, end=at + 1, attributes=dict(attributes)))
        if number + 1 < len(calls):
            spans.append(span("tool", "search", parent=root, start=at + 1, end=at + 2))
    return spans


def run(*calls: Mapping[str, Any]) -> Run:
    return run_of(agent(*calls))


REFUSES = [
    pytest.param([asked()], [asked("bye")], ["prompt"], ["mismatch:prompt.text_hash"], id="the prompt"),
    pytest.param([asked()], [asked("hi\n")], ["prompt"], ["mismatch:prompt.text_hash"], id="a line feed in it"),
    pytest.param([asked()], [asked(tools=[])], ["tool_schema"], ["mismatch:tool.schema_hash"], id="the tools alone"),
    pytest.param([asked()], [asked(model="large")], ["model"], ["mismatch:gen_ai.request.model"], id="the model"),
    pytest.param(
        [asked()],
        [asked(temperature=1.0)],
        ["decoding"],
        ["mismatch:gen_ai.request.temperature"],
        id="the temperature",
    ),
    pytest.param([asked()], [asked(top_p=0.5)], ["decoding"], ["mismatch:fingerprint.params_hash"], id="a parameter"),
    pytest.param([asked(model=None)], [asked(model=None)], ["missing_model"], ["missing_model"], id="no model"),
    pytest.param([asked(None)], [asked(None)], ["missing_prompt"], ["missing_prompt"], id="no prompt"),
    pytest.param([asked()], [], ["no_generations"], None, id="no model call"),
    pytest.param(
        [asked()],
        [asked("bye", tools=[], model="large", temperature=1.0)],
        ["prompt", "tool_schema", "model", "decoding"],
        None,
        id="everything, in one order",
    ),
    pytest.param(
        [asked(), asked("more")],
        [asked(), asked("more", model=None)],
        ["missing_model"],
        ["ok"],
        id="a later call whose model is not known",
    ),
]


@pytest.mark.parametrize(("before", "after", "reasons", "first"), REFUSES)
def test_refuses(before: list[Any], after: list[Any], reasons: list[str], first: list[str] | None) -> None:
    found = compare(run(*before), run(*after))
    assert list(found.reasons) == reasons
    assert not found.comparable
    if first is not None:
        assert list(found.pairs[0].results) == first


ALLOWS = [
    pytest.param([asked()], [asked()], id="the same"),
    pytest.param([asked(temperature=0)], [asked(temperature=0.0)], id="one number in two forms"),
    pytest.param([asked(), asked("rain")], [asked(), asked("sun")], id="a later prompt, which holds what tools found"),
    pytest.param([asked(), asked("a")], [asked(), asked("a"), asked("b")], id="another number of calls"),
]


@pytest.mark.parametrize(("before", "after"), ALLOWS)
def test_allows(before: list[Any], after: list[Any]) -> None:
    assert compare(run(*before), run(*after)).comparable


def test_later_differences_are_listed() -> None:
    found = compare(run(asked(), asked("rain")), run(asked(), asked("sun"), asked("more")))
    assert [pair.results for pair in found.later] == [("mismatch:prompt.text_hash",), ("count",)]
    assert found.path


def test_another_path_is_told_apart_from_another_question() -> None:
    before, after = agent(asked()), agent(asked())
    after.append(span("tool", "search", parent=after[0]))
    assert compare(run_of(before), run_of(before)).path is False
    found = compare(run_of(before), run_of(after))
    assert (found.comparable, found.path) == (True, True)


def test_each_agent_has_a_first_call() -> None:
    def crew(text: str) -> Run:
        spans = agent(asked(), name="lead")
        spans += agent(asked("read"), asked(text), name="reader", above=spans[0], start=10.0)
        return run_of(spans)

    assert compare(crew("a"), crew("b")).comparable
    other = agent(asked(), name="lead")
    other += agent(asked("write"), asked("a"), name="reader", above=other[0], start=10.0)
    assert compare(crew("a"), run_of(other)).reasons == ("prompt",)


def test_agents_of_one_name_may_begin_in_any_order() -> None:
    def crew(*texts: str) -> Run:
        spans = agent(asked(), name="lead")
        for number, text in enumerate(texts):
            spans += agent(asked(text), name=f"worker {number}", above=spans[0], start=10.0 + number)
        return run_of(spans)

    assert compare(crew("a", "b", "c"), crew("c", "a", "b")).comparable
    assert not compare(crew("a", "b", "c"), crew("c", "a", "x")).comparable


def test_ids_of_ones_own_join_calls_whatever_their_order() -> None:
    first, second = asked("a", generation_id="1"), asked("b", generation_id="2")
    found = compare(run(first, second), run(second, first))
    assert found.joined_by == "generation_id"
    assert [pair.results for pair in found.pairs] == [("ok",), ("ok",)]
    assert compare(run(asked()), run(asked())).joined_by == "position"


def test_a_model_from_the_configuration_is_declared_and_not_observed() -> None:
    unnamed = run(asked(model=None))
    found = compare(unnamed, unnamed, model_from_config="small")
    assert (found.comparable, found.declared) == (True, ("small",))
    named = compare(run(asked()), run(asked()), model_from_config="large")
    assert (named.comparable, named.declared) == (True, ())


def test_hashes_of_two_sources_do_not_compare() -> None:
    stamped = {**asked(), keys.FINGERPRINT_SOURCE: "wire", keys.PROMPT_HASH: "0" * 16, keys.PROMPT_TEXT_HASH: "1" * 16}
    stamped[keys.FINGERPRINT_MISSING_MODEL] = "false"
    found = compare(run(asked()), run(stamped))
    assert found.reasons == ("other_source",)
    assert found.pairs[0].results == ("other_source",)
    assert compare(run(stamped), run(stamped)).comparable


def test_a_call_that_two_instrumentations_record_is_one() -> None:
    def stacked(inner: Mapping[str, Any]) -> Run:
        spans = agent(asked(None, model=None))
        spans.append(span("generation", "chat", parent=spans[1], attributes=dict(inner)))
        return run_of(spans)

    assert compare(stacked(asked()), stacked(asked())).comparable
    assert compare(stacked(asked()), stacked(asked("bye"))).reasons == ("prompt",)
    assert len(compare(stacked(asked()), run(asked())).pairs) == 1


ASKED = st.builds(
    asked,
    st.sampled_from(["a", "b", None]),
    model=st.sampled_from(["small", None]),
    tools=st.sampled_from([[], [TOOL], None]),
    temperature=st.sampled_from([0.0, 1.0, None]),
)
CALLS = st.lists(ASKED, max_size=3)


@given(CALLS)
def test_a_run_compares_with_itself_unless_something_is_not_known(calls: list[Any]) -> None:
    found = compare(run(*calls), run(*calls))
    assert set(found.reasons) <= {"no_generations", "missing_model", "missing_prompt"}
    assert found.later == () or found.reasons


@given(CALLS, CALLS)
def test_neither_side_goes_first(before: list[Any], after: list[Any]) -> None:
    here, there = compare(run(*before), run(*after)), compare(run(*after), run(*before))
    assert here.reasons == there.reasons
    assert sorted(pair.results for pair in here.pairs) == sorted(pair.results for pair in there.pairs)


class TestRecordedPairs:
    @pytest.mark.parametrize("row", [row for row in pairs.rows() if not row["blind"]], ids=pairs.named)
    def test_compare_as_they_should(self, row: dict[str, Any], tmp_path: Path) -> None:
        a, b = (pairs.only_run(row[side], tmp_path) for side in "ab")
        found = compare(a, b, model_from_config=row.get("model_from_config"))
        assert found.comparable == (row["expect_compare"] == "comparable"), found.reasons
        if not found.comparable:
            assert set(found.reasons) & set(row["classes"])

    @pytest.mark.parametrize("row", [row for row in pairs.rows() if "model_from_config" in row], ids=pairs.named)
    def test_are_refused_where_only_the_answer_names_a_model(self, row: dict[str, Any], tmp_path: Path) -> None:
        a, b = (pairs.only_run(row[side], tmp_path) for side in "ab")
        assert compare(a, b).reasons == ("missing_model",)


class TestTheCommand:
    def run(self, *arguments: object, given: bytes | None = None) -> Result:
        return CliRunner().invoke(spangate, ["compare", *map(str, arguments)], input=given)

    @pytest.fixture
    def basic(self, tmp_path: Path) -> Path:
        return pairs.unpacked("pydantic-ai-def/basic.otlp.jsonl", tmp_path)

    @pytest.fixture
    def parallel(self, tmp_path: Path) -> Path:
        return pairs.unpacked("pydantic-ai-def/parallel.otlp.jsonl", tmp_path)

    def test_says_that_two_runs_compare(self, basic: Path) -> None:
        result = self.run(basic, basic)
        assert result.exit_code == 0
        assert result.output.splitlines()[0] == "comparable invoke_agent weather_agent"

    def test_says_why_two_runs_do_not(self, basic: Path, parallel: Path) -> None:
        result = self.run(basic, parallel)
        assert result.exit_code == 2
        assert "prompt: the prompt changed: another experiment" in result.output
        assert "chat gpt-4o-mini: mismatch:prompt.text_hash" in result.output
        assert "chat gpt-4o-mini / no call (later): count" in result.output

    def test_writes_json(self, basic: Path, parallel: Path) -> None:
        told = json.loads(self.run("--format", "json", basic, parallel).output)
        assert (told["comparable"], told["reasons"], told["joined_by"]) == (False, ["prompt"], "position")
        assert told["pairs"][0]["results"] == ["mismatch:prompt.text_hash"]
        assert told["run_a"]["root"] == "invoke_agent weather_agent"

    def test_reads_standard_input(self, basic: Path) -> None:
        assert self.run(basic, "-", given=basic.read_bytes()).exit_code == 0
        both = self.run("-", "-")
        assert (both.exit_code, "only one of the two can be standard input" in both.output) == (2, True)

    def test_heeds_the_declared_model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = pairs.unpacked("openai-agents-oi/basic.otlp.jsonl", tmp_path)
        assert self.run(path, path).exit_code == 2
        monkeypatch.setenv("AGENT_MODEL_ID", "gpt-4o-mini")
        result = self.run(path, path)
        assert result.exit_code == 0
        assert "declared: the model is gpt-4o-mini by the configuration; nobody observed it" in result.output

    def test_has_an_exit_code_for_no_model_call(self, tmp_path: Path) -> None:
        path = pairs.unpacked("crewai-oi/basic.otlp.jsonl", tmp_path)
        result = self.run(path, path)
        assert (result.exit_code, "no_generations: a run has no model call" in result.output) == (3, True)

    def test_joins_runs_by_their_names(self, basic: Path, tmp_path: Path) -> None:
        other = pairs.unpacked("langchain-oi/basic.otlp.jsonl", tmp_path)
        both = tmp_path / "both.jsonl"
        both.write_bytes(other.read_bytes() + basic.read_bytes())
        result = self.run(both, basic)
        assert result.exit_code == 2
        assert "comparable invoke_agent weather_agent" in result.output
        assert "is in" in result.output
        assert "and not in" in result.output

    @pytest.mark.parametrize(
        ("content", "code", "said"),
        [
            (None, 2, "No such file"),
            (b"", 3, "no agent run in it: there is nothing at all"),
            (otlp_line(otlp_span(attributes=[])), 3, "no agent run in it: there is 1 span, none of them of an agent"),
            (b'{"resourceSpans": 1}\n', 2, "line 1"),
        ],
        ids=["not there", "empty", "no agent", "bad"],
    )
    def test_names_a_file_that_is_no_good(
        self, basic: Path, tmp_path: Path, content: bytes | None, code: int, said: str
    ) -> None:
        path = tmp_path / "other.jsonl"
        if content is not None:
            path.write_bytes(content)
        result = self.run(basic, path)
        assert result.exit_code == code
        assert f"error: {path}: " in result.output
        assert said in result.output

    def test_names_a_last_line_that_is_cut(self, basic: Path, tmp_path: Path) -> None:
        path = tmp_path / "cut.jsonl"
        path.write_bytes(basic.read_bytes() + basic.read_bytes()[:200])
        result = self.run(basic, path)
        assert result.exit_code == 2
        assert f"error: {path}: line 2: not JSON" in result.output
