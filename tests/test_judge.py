"""The judge: what each level does, whose word counts, what a broken gate costs, and what a fault is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._codes import DEFAULT_LEVELS
from spangate._judge import gate_name, judge
from spangate._names import stable_name
from spangate._records import Finding, Gate, Level, Verdict, not_evaluable
from spangate._run import Run
from spangate._verdict.digests import cluster, policy_digest, problem_hash
from spangate._verdict.levels import Policy
from spangate.gates.encoding import Encoding
from tests.spans import run_of, span

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finds:
    """A gate that finds what it is given."""

    findings: tuple[Finding, ...] = ()

    def __call__(self, run: Run) -> Iterator[Finding]:
        for finding in self.findings:
            yield finding if finding.span is None else replace(finding, span=run.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """A gate that finds one thing and breaks."""

    def __call__(self, _run: Run) -> Iterator[Finding]:
        yield Finding("breaks.first")
        raise KeyError("secret of the run")


def house_rule(run: Run) -> Iterator[Finding]:
    if run.root.name != "house":
        yield Finding("house_rule.name", run.root, "not ours")


def finds(*findings: Finding) -> Gate:
    return Finds(findings=findings)


def judged(*gates: Gate, run: Run | None = None) -> Verdict:
    return judge(run or run_of([span("agent", "root")]), gates)


def codes(verdict: Verdict) -> list[tuple[str, Level | None]]:
    return [(finding.code, finding.level) for finding in (*verdict.findings, *verdict.gaps)]


# code, the finding's own level, policy -> level in force (None: not reported)
LEVELS: list[tuple[str, Level | None, Policy, Level | None]] = [
    ("forest.late_child", None, Policy(), "fail"),
    ("forest.after_entry", None, Policy(), "warn"),
    ("budget.root_usage", None, Policy(), None),
    ("house_rule.name", None, Policy(), "fail"),
    ("budget.usage_missing", "fail", Policy(), "fail"),
    ("house_rule.name", "warn", Policy(), "warn"),
    ("forest.late_child", "off", Policy(), None),
    ("forest.late_child", None, Policy(levels={"forest.late_child": "warn"}), "warn"),
    ("budget.usage_missing", "fail", Policy(levels={"budget.usage_missing": "off"}), None),
    ("budget.root_usage", None, Policy(levels={"budget.root_usage": "fail"}), "fail"),
    ("encoding.lone_surrogate", None, Policy(levels={"encoding.lone_surrogate": "fail"}), "fail"),
    ("forest.after_entry", None, Policy(strict=True), "fail"),
    ("house_rule.name", "warn", Policy(strict=True), "fail"),
    ("budget.root_usage", None, Policy(strict=True), "fail"),
    ("forest.after_entry", None, Policy(strict=True, levels={"forest.after_entry": "warn"}), "warn"),
    ("budget.calls", "not_evaluable", Policy(), "not_evaluable"),
    ("budget.calls", "not_evaluable", Policy(strict=True, levels={"budget.calls": "fail"}), "not_evaluable"),
    ("budget.calls", "not_evaluable", Policy(levels={"budget.calls": "off"}), None),
]


@pytest.mark.parametrize(("code", "own", "policy", "expected"), LEVELS)
def test_level_is_the_policys_else_the_findings_own_else_the_codes(
    code: str, own: Level | None, policy: Policy, expected: Level | None
) -> None:
    verdict = judged(finds(Finding(code, level=own)), replace(policy, require=()))
    mine = [level for found, level in codes(verdict) if found == code]
    assert mine == ([] if expected is None else [expected])
    assert verdict.passed == (expected != "fail")


def test_no_gate_finds_nothing_passes() -> None:
    verdict = judged(finds(), house_rule, run=run_of([span("agent", "house")]))
    assert verdict.verdict == "pass"
    assert verdict.cluster is None
    assert verdict.spans_withheld == 0


def test_failures_stand_before_warnings_each_in_the_order_of_the_gates() -> None:
    late, after = Finding("forest.late_child"), Finding("forest.after_entry")
    first = finds(after, late)
    verdict = judged(first, house_rule)
    assert codes(verdict) == [
        ("forest.late_child", "fail"),
        ("house_rule.name", "fail"),
        ("forest.after_entry", "warn"),
    ]
    assert verdict.failures + verdict.warnings == verdict.findings


def test_gates_answer_pass_fail_or_not_evaluable() -> None:
    missing = not_evaluable("finds.not_evaluable", "nothing recorded")
    assert judged(finds()).gates["finds"] == "pass"
    assert judged(finds(Finding("forest.after_entry"))).gates["finds"] == "pass"
    assert judged(finds(Finding("forest.late_child"))).gates["finds"] == "fail"
    assert judged(finds(missing)).gates["finds"] == "not_evaluable"
    assert judged(finds(not_evaluable("finds.one_rule", "no ids"))).gates["finds"] == "pass"
    assert judged(finds(missing, Finding("forest.late_child"))).gates["finds"] == "fail"


def test_strict_turns_on_what_is_off_for_want_of_strictness() -> None:
    usage = finds(Finding("budget.root_usage"))
    assert judged(usage).passed
    assert codes(judged(usage, Policy(strict=True))) == [("budget.root_usage", "fail")]
    assert judged(usage, Policy(strict=True, levels={"budget.root_usage": "off"})).passed


def test_what_cannot_be_evaluated_is_a_gap_and_no_finding() -> None:
    verdict = judged(finds(not_evaluable("finds.not_evaluable", "nothing recorded")))
    assert verdict.passed
    assert verdict.findings == ()
    assert codes(verdict) == [("finds.not_evaluable", "not_evaluable")]


def test_a_required_gate_must_be_evaluable() -> None:
    gate = finds(not_evaluable("finds.not_evaluable", "nothing recorded"))
    verdict = judged(gate, Policy(require=("finds",)))
    assert [f.detail for f in verdict.failures] == [
        "finds is required and could not be evaluated: nothing recorded",
    ]
    assert verdict.gates["finds"] == "not_evaluable"
    assert [f.code for f in judged(gate, Policy(strict=True)).failures] == ["gate.not_evaluable"]
    assert judged(finds(), Policy(require=("finds",))).passed


def test_a_required_gate_must_be_there() -> None:
    verdict = judged(finds(), Policy(require=("worktree",)))
    assert [f.detail for f in verdict.failures] == ["worktree is required and is not configured"]


def test_a_gate_that_raises_fails_the_run_and_gives_nothing_away() -> None:
    verdict = judged(Breaks(), house_rule, run=run_of([span("agent", "house")]))
    assert codes(verdict) == [("breaks.first", "fail"), ("gate.error", "fail")]
    assert verdict.gates["breaks"] == "fail"
    assert verdict.gates["house_rule"] == "pass"
    assert verdict.failures[1].detail.startswith("breaks raised KeyError in test_judge.py, line ")
    assert "secret" not in repr(verdict.failures)


@pytest.mark.parametrize("level", ["warn", "off"])
def test_a_gate_that_raises_never_passes_even_if_that_is_allowed(level: Level) -> None:
    verdict = judged(Breaks(), Policy(levels={"gate.error": level, "breaks.first": "off"}))
    assert verdict.passed
    assert verdict.gates["breaks"] == "not_evaluable"


@pytest.mark.parametrize("answer", [None, 3, ["forest.late_child"], Finds])
def test_a_gate_that_yields_no_findings_at_all_is_broken(answer: object) -> None:
    def odd(_run: Run) -> object:
        return answer

    verdict = judged(odd)  # type: ignore[arg-type]  # the point of the test
    assert codes(verdict) == [("gate.error", "fail")]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_swallowed(stop: type[BaseException]) -> None:
    def stops(_run: Run) -> Iterator[Finding]:
        raise stop

    with pytest.raises(stop):
        judged(stops)


def test_notes_are_judged_with_their_own_codes() -> None:
    root = span("agent", "root")
    notes = [Finding("buffer.overflow", root, "10,000 spans"), Finding("forest.foreign_parent", root)]
    verdict = judged(house_rule, run=run_of([root], notes=notes))
    assert codes(verdict)[0] == ("buffer.overflow", "fail")
    assert codes(verdict)[-1] == ("forest.foreign_parent", "warn")
    assert "buffer" not in verdict.gates
    assert "forest" not in verdict.gates


def test_a_configured_gate_answers_for_the_notes_of_its_name() -> None:
    root = span("agent", "root")
    run = run_of([root], notes=[Finding("finds.seen_from_outside", root), not_evaluable("other.x", "")])
    assert judged(finds(), run=run).gates["finds"] == "fail"


def test_what_a_note_says_is_not_said_again_by_a_gate() -> None:
    root = span("agent", "root")
    run = run_of([root], notes=[Finding("forest.late_child", root, "its run was decided")])
    verdict = judged(finds(Finding("forest.late_child", root, "started later")), run=run)
    assert [f.detail for f in verdict.findings] == ["its run was decided"]


def test_counts_spans() -> None:
    root = span("agent", "root")
    spans = [root, span("tool", end=None), span("tool", sampled=False), span("tool")]
    verdict = judged(house_rule, run=run_of(spans))
    assert (verdict.totals.spans_started, verdict.totals.spans_ended, verdict.spans_withheld) == (4, 3, 2)


def test_encoding_is_asked_of_every_run_once() -> None:
    run = run_of([span("agent", attributes={"input.value": "half \ud83e"})])
    expected = [("encoding.lone_surrogate", "warn")]
    assert codes(judge(run, [])) == codes(judge(run, [Encoding()])) == expected
    assert judge(run, []).gates == {"encoding": "pass"}


def test_counts_tokens_where_they_can_be_evaluated() -> None:
    root = span("agent", "root")
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 0}
    call = span("generation", "chat", parent=root, attributes=usage)
    totals = judged(run=run_of([root, call])).totals
    assert (totals.input_tokens, totals.output_tokens) == (7, 0)
    assert judged(run=run_of([root])).totals.input_tokens is None


def test_names_the_run() -> None:
    run = run_of([span("agent", "root")], trigger="shutdown")
    verdict = judged(run=run)
    assert (verdict.run_id, verdict.run_name, verdict.trigger, verdict.root) == ("run-1", "root", "shutdown", run.root)
    assert verdict.supersedes is None


def test_gate_names() -> None:
    assert gate_name(house_rule) == "house_rule"
    assert gate_name(Finds()) == "finds"


def test_of_several_policies_the_later_wins_code_by_code() -> None:
    first = Policy(levels={"forest.late_child": "warn", "house_rule.name": "off"}, require=("finds",))
    second = Policy(levels={"forest.late_child": "off"}, require=("house_rule",))
    assert judged(finds(Finding("forest.late_child")), house_rule, first, second).findings == ()
    assert not judged(finds(not_evaluable("finds.not_evaluable", "")), first, second).passed


def test_a_policy_is_no_gate_of_the_report() -> None:
    verdict = judged(finds(), Policy(strict=True))
    assert "policy" not in verdict.gates
    assert list(Policy()(run_of([span("agent")]))) == []


def test_a_policy_refuses_what_it_cannot_mean() -> None:
    with pytest.raises(ValueError, match=r"level of 'forest.late_child' is 'error': it may be fail, warn, off"):
        Policy(levels={"forest.late_child": "error"})  # type: ignore[dict-item]  # the point of the test
    with pytest.raises(TypeError, match=r"require wants a collection of gate names, as \('budget',\)"):
        Policy(require="budget")


# --- what a fault and a policy are called


@pytest.mark.parametrize("vector", VECTORS["problem_cluster"])
def test_problem_hash_has_the_golden_values(vector: dict[str, list[str] | str]) -> None:
    assert problem_hash(set(vector["problems"])) == vector["cluster"]


def test_a_cluster_is_the_same_every_night() -> None:
    def night(name: str) -> str | None:
        tool = span("tool", name)
        return judged(lambda _run: iter([Finding("forest.late_child", tool, f"of {name}")])).cluster

    assert night("search 1 call_kT4eWq0ZrXw81LmNpQ") == night("search 23 call_8Jd02LmqPz7RtYwVcB")
    assert night("search 1") != night("fetch 1")


def test_a_cluster_counts_each_fault_once_and_warnings_not_at_all() -> None:
    root = span("agent", "root")
    late = Finding("forest.late_child", root, "a")
    verdict = judged(finds(late, replace(late, detail="b"), Finding("forest.after_entry", root)))
    assert verdict.cluster == cluster([late]) == problem_hash({"forest.late_child:agent:root"})
    assert cluster([Finding("gate.error")]) == problem_hash({"gate.error"})


NAMES = [
    ("execute_tool search", "execute_tool search"),
    ("step 12", "step "),
    ("run 6f1c0c1e-3d4f-4c5a-9b7e-0123456789ab end", "run  end"),
    ("span 3fa85f6457174562", "span "),
    ("call_4fJq0ZkXw81LmNpQrS", "call_"),
    ("toolu_01A09q90qw90lq917835lq9", "toolu_"),
    ("deadbeef facade", "deadbeef facade"),
    ("ConvertBase64ToText", "ConvertBaseToText"),
    ("gpt-4o-mini-2024-07-18", "gpt-o-mini---"),
    ("", ""),
    ("\ud83e 1", "\ud83e "),
]


@pytest.mark.parametrize(("name", "stable"), NAMES)
def test_names_lose_ids_and_digits(name: str, stable: str) -> None:
    assert stable_name(name) == stable


def test_names_of_megabytes_are_cut() -> None:
    assert len(stable_name("x" * (4 << 20))) == 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Set_up:  # noqa: N801  named as in a list of gates
    """A gate with settings of every kind."""

    limit: float | None = None
    names: frozenset[str] = frozenset()
    table: dict[str, object] = field(default_factory=dict)

    def __call__(self, _run: Run) -> Iterator[Finding]:
        return iter(())


NAN = float("nan")
POLICIES: dict[str, list[Gate]] = {
    "nothing": [],
    "a gate": [Finds()],
    "a function": [house_rule],
    "two gates": [Finds(), house_rule],
    "a level": [Finds(), Policy(levels={"forest.late_child": "warn"})],
    "another level": [Finds(), Policy(levels={"forest.late_child": "off"})],
    "a requirement": [Finds(), Policy(require=("finds",))],
    "strict": [Finds(), Policy(strict=True)],
    "settings": [Set_up()],
    "a number": [Set_up(limit=1.5)],
    "no number": [Set_up(limit=NAN)],
    "names": [Set_up(names=frozenset({"a", "b", "c"}))],
    "a table": [Set_up(table={"a": [1, {"b": None}]})],
    "a path in a table": [Set_up(table={"a": Path("x")})],
    "a function in a table": [Set_up(table={"a": house_rule})],
}


def test_each_policy_has_its_own_digest() -> None:
    digests = {name: judged(*gates).policy for name, gates in POLICIES.items()}
    assert len(set(digests.values())) == len(POLICIES)
    assert all(len(digest) == 12 and int(digest, 16) >= 0 for digest in digests.values())


@pytest.mark.parametrize("gates", POLICIES.values(), ids=POLICIES)
def test_a_digest_does_not_hang_on_the_order_of_gates_or_on_the_moment(gates: list[Gate]) -> None:
    assert judged(*gates).policy == judged(*reversed(gates)).policy


ELSEWHERE = """
import dataclasses
from spangate._verdict.digests import policy_digest
from spangate._verdict.levels import Policy

@dataclasses.dataclass(frozen=True)
class Gate:
    names: frozenset

print(policy_digest([Gate(frozenset("abcdefgh"))], Policy()))
"""


def test_a_digest_is_the_same_in_every_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 12


def test_equal_policies_have_one_digest() -> None:
    assert policy_digest([], Policy()) == policy_digest([], Policy(levels=dict(DEFAULT_LEVELS)))
    assert policy_digest([Set_up(limit=1)], Policy()) == policy_digest([Set_up(limit=1.0)], Policy())


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(DEFAULT_LEVELS)), st.sampled_from(["fail", "warn", "off", None])), max_size=8
    ),
    st.dictionaries(st.sampled_from(sorted(DEFAULT_LEVELS)), st.sampled_from(["fail", "warn", "off"]), max_size=4),
)
def test_strict_never_passes_what_the_plain_policy_fails(
    found: list[tuple[str, Level | None]], levels: dict[str, Level]
) -> None:
    gate = finds(*(Finding(code, level=level) for code, level in found))
    plain, strict = judged(gate, Policy(levels=levels)), judged(gate, Policy(levels=levels, strict=True))
    assert plain.passed or not strict.passed
    assert len(plain.findings) <= len(strict.findings)


def test_of_two_gates_with_one_name_the_later_is_asked() -> None:
    def early(run: Run) -> Iterator[Finding]:
        yield Finding("own.early", run.root)

    def late(run: Run) -> Iterator[Finding]:
        yield Finding("own.late", run.root)

    early.__name__ = late.__name__ = "own"
    verdict = judge(run_of([span("agent")]), [early, late])
    assert [finding.code for finding in verdict.failures] == ["own.late"]
