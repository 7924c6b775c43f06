"""Policy files: what they set up, and errors that say what to write instead."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

from spangate._errors import PolicyError
from spangate._policy import load_policy, parse_policy
from spangate._policy_types import fit, wanted
from spangate._records import Gate
from spangate._verdict.levels import Policy
from spangate.gates import GATES, Cardinality, Forest, Worktree, default_gates, strict_gates


def policy_of(gates: tuple[Gate, ...]) -> Policy:
    policy = gates[-1]
    assert isinstance(policy, Policy)
    return policy


def error_of(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "policy.toml")
    return str(caught.value)


def test_an_empty_file_is_the_default() -> None:
    assert parse_policy("", "p") == (*default_gates(), Policy())


def test_a_table_sets_up_its_gate_and_leaves_the_others() -> None:
    gates = parse_policy("[cardinality]\nmax_span_bytes = 1_000", "p")
    assert Cardinality(max_span_bytes=1000) in gates
    assert [type(gate) for gate in gates] == [*(kind for kind in GATES if kind is not Worktree), Policy]
    assert Forest() in gates


def test_a_gate_that_needs_to_be_told_something_is_there_when_it_is() -> None:
    gates = parse_policy('[worktree]\nrepo = "."\nwriters = { write_file = "path" }\nallow = ["*.log"]', "p")
    assert Worktree(repo=".", writers={"write_file": "path"}, allow=("*.log",)) in gates
    assert "worktree: needs repo" in error_of("[worktree]\nignored = true")


def test_a_whole_number_is_a_number() -> None:
    assert Forest(skew_tolerance_s=2.0) in parse_policy("[forest]\nskew_tolerance_s = 2", "p")


LEVELS = {
    "quoted codes": 'levels = { "forest.late_child" = "warn" }',
    "a table": '[levels]\n"forest.late_child" = "warn"',
    "dots that make tables": '[levels]\nforest.late_child = "warn"',
    "in the table of the gate": '[forest]\nlevels = { "forest.late_child" = "warn" }',
    "in the table of the gate, in short": '[forest]\nlevels = { late_child = "warn" }',
    "a table in the table of the gate": '[forest.levels]\nlate_child = "warn"',
}


@pytest.mark.parametrize("text", LEVELS.values(), ids=LEVELS)
def test_levels(text: str) -> None:
    assert policy_of(parse_policy(text, "p")).levels == {"forest.late_child": "warn"}


@pytest.mark.parametrize("code", ["encoding.lone_surrogate", "gate.error", "export.partial", "buffer.overflow"])
def test_codes_of_no_configured_gate_have_levels_too(code: str) -> None:
    assert policy_of(parse_policy(f'levels = {{ "{code}" = "off" }}', "p")).levels == {code: "off"}


def test_required_gates_and_strict() -> None:
    policy = policy_of(parse_policy('require = ["forest", "timing"]\nstrict = true', "p"))
    assert policy == Policy(require=("forest", "timing"), strict=True)


def test_strict_gates_are_the_default_gates_under_a_strict_policy() -> None:
    assert strict_gates() == parse_policy("strict = true", "p")


def test_gates_can_be_swapped_without_losing_the_policy() -> None:
    mine = Cardinality(max_span_bytes=10)
    gates = [gate for gate in strict_gates() if type(gate) is not Cardinality] + [mine]
    assert Policy(strict=True) in gates
    assert len(gates) == len(strict_gates())


def test_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("\ufeff# søppel\n[forest]\nskew_tolerance_s = 0.5\n", encoding="utf-8")
    assert Forest(skew_tolerance_s=0.5) in load_policy(file)
    assert load_policy(str(file)) == load_policy(file)


ERRORS = {
    "[forrest]": "policy.toml: forrest: no such gate or key; did you mean forest?",
    "[encoding]": "policy.toml: encoding: no such gate or key; there are GATES, levels, require, strict",
    "requires = []": "policy.toml: requires: no such gate or key; did you mean require?",
    "forest = true": "policy.toml: forest: is true; it should be a table",
    "[forest]\nskew_tolerance = 1": (
        "policy.toml: forest.skew_tolerance: no such setting of forest; did you mean skew_tolerance_s?"
    ),
    "[forest]\nx = 1": "policy.toml: forest.x: no such setting of forest; there are skew_tolerance_s, levels",
    "[completeness]\nx = 1": "policy.toml: completeness.x: no such setting of completeness; there are levels",
    "[forest]\nrequire = ['forest']": (
        "policy.toml: forest.require: no such setting of forest;"
        " require is a key of the whole file and stands above the first table"
    ),
    "[forest]\nlate_child = 'warn'": (
        "policy.toml: forest.late_child: no such setting of forest; it is a code: levels = { late_child = ... }"
    ),
    "[forest]\nskew_tolerance_s = '1'": 'policy.toml: forest.skew_tolerance_s: is "1"; it should be a number',
    "[forest]\nskew_tolerance_s = nan": "policy.toml: forest.skew_tolerance_s: is nan; it should be a number",
    "[cardinality]\nmax_span_bytes = 1.5": (
        "policy.toml: cardinality.max_span_bytes: is 1.5; it should be a whole number"
    ),
    "[cardinality]\nmax_span_bytes = true": (
        "policy.toml: cardinality.max_span_bytes: is true; it should be a whole number"
    ),
    "[cardinality]\nmax_span_bytes = -1": (
        "policy.toml: cardinality: max_span_bytes is -1: write a whole number, 0 or more, or None for no ceiling"
    ),
    "levels = ['forest.late_child']": "policy.toml: levels: is ['forest.late_child']; it should be a table",
    "levels = { 'forest.late_kid' = 'warn' }": (
        'policy.toml: levels: no code "forest.late_kid"; did you mean forest.late_child?'
    ),
    "levels = { late_child = 'warn' }": 'policy.toml: levels: no code "late_child"; did you mean forest.late_child?',
    "levels = { 'forest.late_child' = 'error' }": (
        'policy.toml: levels: forest.late_child is "error": a level is "fail" or "warn" or "off"'
    ),
    "levels = { 'forest.late_child' = 'not_evaluable' }": (
        'policy.toml: levels: forest.late_child is "not_evaluable": a level is "fail" or "warn" or "off"'
    ),
    "levels = { 'forest.late_child' = ['warn'] }": (
        'policy.toml: levels: forest.late_child is [\'warn\']: a level is "fail" or "warn" or "off"'
    ),
    "require = 'forest'": 'policy.toml: require: is "forest"; it should be a list, each item a text',
    "require = ['forrest']": 'policy.toml: require: no gate "forrest"; did you mean forest?',
    "strict = 1": "policy.toml: strict: is 1; it should be true or false",
}


@pytest.mark.parametrize(("text", "message"), ERRORS.items(), ids=ERRORS)
def test_an_error_names_the_file_and_the_key_and_what_to_write(text: str, message: str) -> None:
    names = ", ".join(kind.__name__.lower() for kind in GATES)
    assert error_of(text) == message.replace("GATES", names)


def test_the_table_of_a_gate_holds_no_codes_of_another() -> None:
    error = error_of("[timing]\nlevels = { 'forest.late_child' = 'warn' }")
    assert error.startswith('policy.toml: timing.levels: no code "forest.late_child"; there are timing.')


def test_an_error_of_syntax_names_the_line() -> None:
    assert error_of("[forest]\nskew_tolerance_s = = 1").startswith("policy.toml: is not TOML: ")
    assert "line 2" in error_of("[forest]\nskew_tolerance_s = = 1")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    with pytest.raises(PolicyError, match=r"none\.toml: cannot be read: No such file or directory"):
        load_policy(file)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes(b"# s\xf8ppel")
    with pytest.raises(PolicyError, match=r"latin\.toml: is not UTF-8: .* at byte 3"):
        load_policy(file)


def test_says_what_to_install_where_python_reads_no_toml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    monkeypatch.setitem(sys.modules, "tomli", None)
    assert error_of("") == "policy.toml: reading it needs tomli on Python 3.10: pip install 'spangate[cli]'"


def test_every_setting_of_every_gate_can_be_written() -> None:
    """A setting that no file can hold is told apart by its words, and there is none today."""
    for kind in GATES:
        for field in dataclasses.fields(kind):
            assert "only be set in Python" not in wanted(get_type_hints(kind)[field.name])


FITS: list[tuple[Any, Any, Any]] = [
    (1, int, 1),
    (1, float, 1.0),
    (True, bool, True),
    ("a", str, "a"),
    (3, int | None, 3),
    ("x", Literal["x", "y"], "x"),
    (["a"], tuple[str, ...], ("a",)),
    (["a", "a"], frozenset[str], frozenset({"a"})),
    ({"a": 1}, Mapping[str, float], {"a": 1.0}),
    ({"a": [1]}, Mapping[str, tuple[int, ...]], {"a": (1,)}),
    (["a"], str | tuple[str, ...], ("a",)),
]


@pytest.mark.parametrize(("value", "hint", "fitted"), FITS)
def test_a_value_fits_a_type(value: Any, hint: Any, fitted: Any) -> None:
    made = fit(value, hint)
    assert made == fitted
    assert type(made) is type(fitted)


MISFITS: list[tuple[Any, Any, str]] = [
    (True, int, "a whole number"),
    (1.0, int, "a whole number"),
    (float("inf"), float, "a number"),
    (10**400, float, "a number"),
    (1, bool, "true or false"),
    (1, str | None, "a text"),
    ("z", Literal["x", 1], '"x" or 1'),
    (True, Literal["x", 1], '"x" or 1'),
    ([1], tuple[str, ...], "a list, each item a text"),
    ({"a": "b"}, Mapping[str, int], "a table, each value a whole number"),
    ("a", int | float, "a whole number or a number"),
    ("a", object, "nothing, since it can only be set in Python"),
]


@pytest.mark.parametrize(("value", "hint", "words"), MISFITS)
def test_a_value_that_does_not_fit(value: Any, hint: Any, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        fit(value, hint)
    assert str(caught.value) == words == wanted(hint)
