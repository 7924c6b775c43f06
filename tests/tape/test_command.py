"""``spangate tape``, as a person and as a script use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spangate import tape
from spangate.cli._group import spangate


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with tape.record(path, harness="/") as recording:
        recording.call("llm", {"q": "hi"}, lambda: {"text": "hello"})
        recording.call("tool", {"name": "add", "args": {"a": 1}}, lambda: 3)
        with pytest.raises(ValueError, match="no"):
            recording.call("tool", {"name": "boom"}, lambda: int("no"))
        list(recording.stream("llm", {"q": "more"}, lambda: iter("ab")))
    return path


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(spangate, ["tape", *map(str, arguments)])


def test_show_tells_every_decision(cassette: Path) -> None:
    result = ran("show", cassette)
    assert result.exit_code == 0
    first, *rest = result.output.splitlines()
    assert first.startswith(f"{cassette}: 4 decisions; digest ")
    assert '{"q": "hi", "step": 1}' in rest[0]
    assert rest[1].strip() == '-> {"text": "hello"}'
    assert rest[5].strip().startswith("-> ValueError: invalid literal")
    assert rest[7].strip() == '-> 2 pieces: ["a", "b"]'


def test_show_writes_json(cassette: Path) -> None:
    rows = [json.loads(line) for line in ran("show", "--format", "json", cassette).output.splitlines()]
    assert [(row["line"], row["kind"]) for row in rows] == [(2, "llm"), (3, "tool"), (4, "tool"), (5, "llm")]
    assert rows[3]["outcome"]["chunks"] == ["a", "b"]


def test_verify_believes_what_is_sound(cassette: Path) -> None:
    result = ran("verify", cassette)
    assert (result.exit_code, result.output) == (0, f"{cassette}: sound: 4 decisions\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"a":1', '"a":2'), "line 3: tool:"),
        (lambda text: text[:-4], "line 5 is cut off"),
        (lambda text: text.replace('"kind":"llm"', '"kind":7', 1), "line 2: is no decision: 'kind' is no text"),
    ],
    ids=["a payload that was changed", "a line that is cut", "a line that is no decision"],
)
def test_verify_finds(cassette: Path, change: object, said: str) -> None:
    assert callable(change)
    cassette.write_text(change(cassette.read_text()))
    result = ran("verify", cassette)
    assert result.exit_code == 1
    assert said in result.output
    told = json.loads(ran("verify", "--format", "json", cassette).output)
    assert told["sound"] is False
    assert said in told["wrong"][0]


def test_verify_says_what_cannot_be_computed(tmp_path: Path) -> None:
    with tape.record(tmp_path / "a") as recording:
        recording.call("llm", {"api_key": "x"}, lambda: 1)
    assert "1 of them without secrets, whose keys cannot be computed" in ran("verify", tmp_path / "a").output


def test_diff_finds_the_first_decision_that_differs(cassette: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    with tape.record(other, harness="/") as recording:
        recording.call("llm", {"q": "hi"}, lambda: {"text": "hello"})
        recording.call("tool", {"name": "add", "args": {"a": 2}}, lambda: 3)
    assert ran("diff", cassette, cassette).output == "same: 4 decisions\n"
    result = ran("diff", cassette, other)
    assert result.exit_code == 1
    assert "they differ at $.args.a: 1 was recorded, 2 is here" in result.output
    told = json.loads(ran("diff", "--format", "json", cassette, other).output)
    assert (told["same"], len(told["only_a"]), len(told["only_b"])) == (False, 3, 1)


@pytest.mark.parametrize("command", [["show"], ["verify"], ["diff", "nowhere"]])
def test_a_file_that_cannot_be_read_is_2(command: list[str]) -> None:
    result = ran(*command, "nowhere")
    assert result.exit_code == 2
    assert "nowhere: cannot be read: No such file" in result.output


@pytest.mark.parametrize("arguments", [[], ["show"], ["diff", "a"], ["show", "--format", "xml", "a"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    assert ran(*arguments).exit_code == 2
