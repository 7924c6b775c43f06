"""``spangate tree --against``: the trees of two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._records import Span
from spangate._run import Run
from spangate.cli._two_trees import Pair, pairs
from tests.report.recorded import agent, broken, changed, generation, invoke, recording, sound
from tests.spans import run_of, span


def tree(*names: str) -> Run:
    """Make a run of spans; a name with blanks before it stands below the last one with fewer."""
    way: list[Span] = []
    made: list[Span] = []
    for name in names:
        depth = len(name) - len(name.lstrip())
        del way[depth:]
        one = span("agent" if not depth else "tool", name.strip(), parent=way[-1] if way else None)
        made.append(one)
        way.append(one)
    return run_of(made)


def drawn(found: list[Pair]) -> list[str]:
    signs = {"same": " ", "changed": "~", "added": "+", "dropped": "-"}
    return [signs[pair.standing] + " " * pair.depth + (pair.here or pair.base or span()).name for pair in found]


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        (["a", " b", " c"], ["a", " b", " c"], [" a", "  b", "  c"]),
        (["a", " b"], ["a", " b", " c"], [" a", "  b", "+ c"]),
        (["a", " b", " c"], ["a", " c"], [" a", "- b", "  c"]),
        (["a", " b", "  c", "  d"], ["a", " b", "  d"], [" a", "  b", "-  c", "   d"]),
        (["a", " b", "  c"], ["a", " x", "  c"], [" a", "- b", "-  c", "+ x", "+  c"]),
        (["a", " b", " b", " b"], ["a", " b"], [" a", "  b", "- b", "- b"]),
        (["a", " b", " c"], ["a", " c", " b"], [" a", "- b", "  c", "+ b"]),
        (["a", " b"], ["z", " b"], ["~z", "  b"]),
        (["a", "lost"], ["a", "lost", " b"], [" a", " lost", "+ b"]),
    ],
)
def test_children_stand_side_by_side_by_role_and_name(before: list[str], after: list[str], seen: list[str]) -> None:
    assert drawn([*pairs(tree(*before), tree(*after))]) == seen


def test_a_cycle_of_parents_is_shown_once() -> None:
    root = span("agent")
    one, other = span("tool", "one", parent_id=901, span_id=900), span("tool", "other", parent_id=900, span_id=901)
    found = [*pairs(tree("agent"), run_of([root, one, other]))]
    assert drawn(found) == [" agent", "+one", "+ other"]


trees = st.lists(st.integers(0, 5), max_size=12).map(
    lambda depths: tree("root", *(" " * (1 + min(depth, at)) + "abc"[depth % 3] for at, depth in enumerate(depths)))
)


@given(trees, trees)
def test_every_span_of_either_run_has_one_place(before: Run, after: Run) -> None:
    found = [*pairs(before, after)]
    for run, side in ((before, "base"), (after, "here")):
        shown = [getattr(pair, side) for pair in found if getattr(pair, side) is not None]
        assert sorted(map(id, shown)) == sorted(map(id, run.spans))


@given(trees)
def test_a_run_beside_itself_is_the_same(run: Run) -> None:
    assert {pair.standing for pair in pairs(run, run_of(run.spans))} == {"same"}


@pytest.fixture
def old(tmp_path: Path) -> str:
    return recording(tmp_path / "old.jsonl", sound())


@pytest.fixture
def new(tmp_path: Path) -> str:
    return recording(tmp_path / "new.jsonl", changed())


class TestOnATerminal:
    def test_both_stand_side_by_side_with_marks(self, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "120")
        lines = invoke("tree", "--against", old, new).stdout.splitlines()
        dropped, came, differs = (next(line for line in lines if line[59:60] == mark) for mark in "-+~")
        assert "execute_tool read_file" in dropped[:58]
        assert came[:58].strip() == ""
        assert "execute_tool search" in came
        assert "execute_tool write_file" in differs[:58]
        assert "execute_tool write_file" in differs[58:]
        assert lines[lines.index(differs) + 1].endswith("differs in arguments")
        assert "1 changed, 1 added, 1 dropped, 7 the same" in lines

    def test_a_narrow_one_shows_one_tree(self, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        lines = invoke("tree", "--against", old, new).stdout.splitlines()
        assert [line[:1] for line in lines if "execute_tool " in line] == [" ", "-", "+", "~", " "]
        assert any(line.endswith("chat small-2  1.7 s -> 1.5 s") for line in lines)

    def test_findings_stand_below_their_span(self, old: str, tmp_path: Path) -> None:
        said = invoke("tree", "--against", old, recording(tmp_path / "new.jsonl", broken())).stdout
        assert "x completeness.open_span: started and never ended" in said
        assert "FAIL  invoke_agent fixer" in said

    def test_colours_are_for_terminals(self, old: str, new: str) -> None:
        assert "\x1b" not in invoke("tree", "--against", old, new).stdout


def test_json_has_every_place_of_both(old: str, new: str) -> None:
    (line,) = invoke("tree", "--against", old, "--format", "json", new).stdout.splitlines()
    told = json.loads(line)
    assert list(told) == ["a", "b", "spans"]
    assert (told["a"]["verdict"], told["b"]["root"]) == ("pass", "invoke_agent fixer")
    (dropped,) = [place for place in told["spans"] if place["standing"] == "dropped"]
    assert (dropped["a"]["name"], dropped["b"], dropped["depth"]) == ("execute_tool read_file", None, 1)
    (differs,) = [place for place in told["spans"] if place["standing"] == "changed"]
    assert differs["changed"] == ["arguments"]


def test_runs_without_a_counterpart_are_told(tmp_path: Path, old: str) -> None:
    other = agent(8, name="invoke_agent newcomer")
    done = invoke(
        "tree", "--against", old, recording(tmp_path / "new.jsonl", changed(), [other, generation(other, 1, 1)])
    )
    assert done.exit_code == 0
    assert "note: a run 'invoke_agent newcomer' is in " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["one.jsonl", "two.jsonl"], 2, "--against compares one FILE"),
        (["--timing", "one.jsonl"], 2, "do not go together"),
        (["/nowhere/new.jsonl"], 2, "No such file"),
    ],
)
def test_wrong_usage(old: str, arguments: list[str], code: int, said: str) -> None:
    done = invoke("tree", "--against", old, *arguments)
    assert done.exit_code == code
    assert said in done.stderr
