"""Budget: what a run used against its ceilings, and counts that cannot be right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spangate._codes import DEFAULT_LEVELS
from spangate._dialects import classify
from spangate._records import Finding, Span
from spangate._run import Run
from spangate._usage import count
from spangate.gates.budget import Budget
from tests import recordings
from tests.spans import run_of, span
from tests.usage import ANSWER, FRAMEWORK, agent, call, container, tool, used

PRICES = {"model-a": {"input": 2.5, "output": 10.0}, "model-b": {"input": 1.0, "output": 4.0}}
TOKENS: dict[str, Any] = {"max_input_tokens": 1000, "max_output_tokens": 1000}


def found(run: Run, **settings: Any) -> list[str]:
    """The findings as ``level code``, those of gaps too, without what every code here starts with."""
    return [
        f"{finding.level or DEFAULT_LEVELS[finding.code]} {finding.code.removeprefix('budget.')}"
        for finding in Budget(**settings)(run)
    ]


def details(run: Run, **settings: Any) -> list[str]:
    return [finding.detail for finding in Budget(**settings)(run)]


def calls(*counts: Any, **fields: Any) -> Run:
    root = agent()
    return run_of([root, *(call(root, *pair, **fields) for pair in counts)])


def stacked() -> Run:
    root = agent()
    outer = call(root, 500, 80, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 500, 80)])


def wrong_total() -> Run:
    root = agent(15_000, 552)
    return run_of([root, call(root, 7500, 276)])


def zero_total() -> Run:
    root = agent(0, 276)
    return run_of([root, call(root, 7500, 276)])


def failed_call(given: int = 100) -> Run:
    root = agent()
    return run_of([root, call(root, given, 20), call(root, status="ERROR")])


def tools(*results: Any, **fields: Any) -> Run:
    root = agent()
    return run_of([root, call(root, 1, 1), *(tool(root, result, **fields) for result in results)])


def silent_tool(status: Any = "UNSET") -> Run:
    root = agent()
    return run_of([root, call(root, 1, 1), tool(root, "123"), tool(root, status=status)])


def two_models(*, unnamed: bool = False) -> Run:
    root = agent()
    return run_of(
        [
            root,
            call(root, 1000, 100, model="model-a"),
            call(root, 500, 50, model="model-a"),
            call(root, 2000, 200, model=None if unnamed else "model-b"),
        ]
    )


def iterations(number: int) -> Run:
    root = agent()
    steps = [container("iteration", parent=root) for _ in range(number)]
    return run_of([root, call(root, 1, 1), *steps])


def tool_only() -> Run:
    root = span("workflow")
    return run_of([root, tool(root, "12345")])


def native_root(**attributes: Any) -> Run:
    root = span("agent", "agent.run", scope="spangate", end=10.0, attributes=attributes)
    return run_of([root, call(root, 412, 86)])


FINDS: list[tuple[str, Callable[[], Run], dict[str, Any], list[str]]] = [
    ("over the input", lambda: calls((412, 86), (903, 140)), {"max_input_tokens": 1314}, ["fail ceiling"]),
    ("over the output", lambda: calls((412, 86), (903, 140)), {"max_output_tokens": 225}, ["fail ceiling"]),
    ("over both", lambda: calls((2, 2)), {"max_input_tokens": 1, "max_output_tokens": 1}, ["fail ceiling"] * 2),
    ("a ceiling of zero", lambda: calls((1, 0)), {"max_input_tokens": 0}, ["fail ceiling"]),
    (
        "over the cache",
        lambda: calls((10, 5), attributes=used(cached=1000)),
        {"max_input_tokens": 1000},
        ["fail ceiling"],
    ),
    ("over the bytes", lambda: tools("été", "x"), {"max_tool_payload_bytes": 5}, ["fail ceiling"]),
    ("too many calls", lambda: calls((1, 1), (1, 1), (1, 1)), {"max_calls": 2}, ["fail ceiling"]),
    ("too many iterations", lambda: iterations(3), {"max_iterations": 2}, ["fail ceiling"]),
    (
        "a floor over the ceiling",
        lambda: failed_call(101),
        {"max_input_tokens": 100},
        ["fail ceiling", "warn lower_bound"],
    ),
    (
        "a floor under the ceiling",
        failed_call,
        {"max_input_tokens": 100},
        ["warn lower_bound", "not_evaluable not_evaluable"],
    ),
    ("a floor without a ceiling", failed_call, {}, ["warn lower_bound"]),
    ("a floor where calls are counted, not tokens", failed_call, {"max_calls": 2}, ["warn lower_bound"]),
    ("no counts, no ceiling", lambda: calls((), (1, 1)), {}, ["warn usage_missing", "not_evaluable not_evaluable"]),
    (
        "no counts",
        lambda: calls((), (1, 1)),
        {"max_input_tokens": 9},
        ["fail usage_missing", "not_evaluable not_evaluable"],
    ),
    ("no output counts", lambda: calls((1,)), TOKENS, ["fail usage_missing", "not_evaluable not_evaluable"]),
    ("no output counts where none are asked for", lambda: calls((1,)), {"max_input_tokens": 9}, ["warn usage_missing"]),
    ("no calls, no ceiling", lambda: run_of([agent()]), {}, ["not_evaluable not_evaluable"]),
    (
        "an agent without calls",
        lambda: run_of([agent(5, 5)]),
        TOKENS,
        ["not_evaluable not_evaluable", "fail usage_missing"],
    ),
    (
        "an agent without calls to count",
        lambda: run_of([agent()]),
        {"max_calls": 9},
        ["not_evaluable not_evaluable", "fail usage_missing"],
    ),
    ("only tools", tool_only, TOKENS, ["not_evaluable not_evaluable"]),
    ("a truth value", lambda: calls((True, 1)), {}, ["fail usage_invalid"]),
    ("half a token", lambda: calls((1.5, 1)), {}, ["fail usage_invalid"]),
    ("a negative count", lambda: calls((-1, 1)), {}, ["fail usage_negative"]),
    ("no number", lambda: calls((float("nan"), float("inf"))), {}, ["fail usage_nonfinite"] * 2),
    (
        "no number under a ceiling",
        lambda: calls((float("nan"), 1)),
        {"max_input_tokens": 9},
        ["fail usage_nonfinite", "not_evaluable not_evaluable"],
    ),
    ("text and float", lambda: calls(("128", 12.0)), {}, ["warn usage_coerced"] * 2),
    ("an answer for nothing", lambda: calls((0, 0), attributes=ANSWER), {}, ["warn suspicious_zero"]),
    (
        "an answer for nothing, with a ceiling",
        lambda: calls((0, 0), attributes=ANSWER),
        TOKENS,
        ["fail suspicious_zero"],
    ),
    ("a total of nothing, with a ceiling", zero_total, {"max_output_tokens": 999}, ["warn suspicious_zero"]),
    ("a wrong total", wrong_total, {}, ["fail rollup_mismatch"] * 2),
    ("two instrumentations", stacked, {"max_input_tokens": 500}, ["warn double_instrumentation"]),
    ("an answer seen again", lambda: calls((1, 1), (1, 1), response="r1"), {}, ["warn replayed_response"]),
    (
        "a silent tool",
        silent_tool,
        {"max_tool_payload_bytes": 9},
        ["fail payload_missing", "not_evaluable not_evaluable"],
    ),
    ("a failed tool", lambda: silent_tool("ERROR"), {"max_tool_payload_bytes": 3}, ["not_evaluable not_evaluable"]),
    ("no tools to measure", lambda: calls((1, 1)), {"max_tool_payload_bytes": 9}, ["not_evaluable ceiling"]),
    ("no iterations to count", lambda: calls((1, 1)), {"max_iterations": 9}, ["not_evaluable ceiling"]),
    ("counts on the root of a run", lambda: native_root(**used(412, 86)), {}, ["off root_usage"]),
    ("over one model's input", two_models, {"per_model": {"model-a": {"max_input_tokens": 1499}}}, ["fail ceiling"]),
    ("over one model's output", two_models, {"per_model": {"model-b": {"max_output_tokens": 199}}}, ["fail ceiling"]),
    ("over one model's calls", two_models, {"per_model": {"model-a": {"max_calls": 1}}}, ["fail ceiling"]),
    (
        "a call of no model",
        lambda: two_models(unnamed=True),
        {"per_model": {"model-a": {"max_calls": 9}}},
        ["not_evaluable not_evaluable"],
    ),
    ("over one tool's calls", lambda: tools("1", "1"), {"per_tool": {"search": {"max_calls": 1}}}, ["fail ceiling"]),
    (
        "over one tool's bytes",
        lambda: tools("1", "1"),
        {"per_tool": {"search": {"max_payload_bytes": 1}}},
        ["fail ceiling"],
    ),
    ("over the cost", two_models, {"prices": PRICES, "max_cost": 0.008049}, ["fail ceiling"]),
    (
        "a model without a price",
        two_models,
        {"prices": {"model-a": PRICES["model-a"]}, "max_cost": 1},
        ["not_evaluable not_evaluable"],
    ),
    (
        "a call without counts to price",
        lambda: calls((), model="model-a"),
        {"prices": PRICES, "max_cost": 1},
        ["fail usage_missing", "not_evaluable not_evaluable"],
    ),
]

STAYS_SILENT: list[tuple[str, Callable[[], Run], dict[str, Any]]] = [
    ("no ceiling", lambda: calls((412, 86), (903, 140)), {}),
    (
        "exactly the ceilings",
        lambda: calls((412, 86), (903, 140)),
        {"max_input_tokens": 1315, "max_output_tokens": 226},
    ),
    ("zero is a measured value", lambda: calls((0, 86), attributes=ANSWER), TOKENS),
    ("exactly the bytes", lambda: tools("été", "x"), {"max_tool_payload_bytes": 6}),
    ("bytes alone are asked for", tool_only, {"max_tool_payload_bytes": 5}),
    ("exactly the calls", lambda: calls((1, 1), (1, 1)), {"max_calls": 2}),
    ("exactly the iterations", lambda: iterations(2), {"max_iterations": 2}),
    ("exactly one model's", two_models, {"per_model": {"model-a": {"max_input_tokens": 1500, "max_calls": 2}}}),
    ("a model that was not asked", two_models, {"per_model": {"model-c": {"max_calls": 0}}}),
    ("exactly one tool's", lambda: tools("1", "1"), {"per_tool": {"search": {"max_calls": 2, "max_payload_bytes": 2}}}),
    ("a tool that was not called", lambda: tools("1"), {"per_tool": {"delete": {"max_calls": 0}}}),
    ("exactly the cost", two_models, {"prices": PRICES, "max_cost": 0.00805}),
    ("a silent tool, no ceiling on it", silent_tool, TOKENS),
    ("the root of a run without counts", native_root, {}),
]


@pytest.mark.parametrize(("make", "settings", "findings"), [row[1:] for row in FINDS], ids=[row[0] for row in FINDS])
def test_finds(make: Callable[[], Run], settings: dict[str, Any], findings: list[str]) -> None:
    assert found(make(), **settings) == findings


@pytest.mark.parametrize(("make", "settings"), [row[1:] for row in STAYS_SILENT], ids=[row[0] for row in STAYS_SILENT])
def test_stays_silent(make: Callable[[], Run], settings: dict[str, Any]) -> None:
    assert found(make(), **settings) == []


def test_a_finding_says_what_was_used_of_what() -> None:
    assert details(calls((412, 86), (903, 140)), max_input_tokens=1314) == ["input tokens: 1315 > 1314"]
    assert details(failed_call(101), max_input_tokens=100)[0] == "input tokens: at least 101 > 100"
    assert details(two_models(), prices=PRICES, max_cost=0.001) == ["cost: 0.00805 > 0.001"]
    assert details(two_models(), prices={"model-a": PRICES["model-a"]}, max_cost=1) == ["cost: no price for model-b"]
    assert details(tools("12"), per_tool={"search": {"max_payload_bytes": 1}}) == ["search: max_payload_bytes: 2 > 1"]


def test_a_span_that_says_nothing_is_found_once_whatever_is_asked_of_it() -> None:
    run = calls(())
    missing = [f for f in Budget(**TOKENS, max_calls=9)(run) if f.code == "budget.usage_missing"]
    assert [(f.span, f.detail) for f in missing] == [(run.spans[1], "does not say its part of input tokens")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_input_tokens": -1}, "max_input_tokens is -1: write a whole number"),
        ({"max_output_tokens": 1.5}, "max_output_tokens is 1.5: write a whole number"),
        ({"max_calls": True}, "max_calls is True: write a whole number"),
        ({"max_iterations": "8"}, "max_iterations is '8': write a whole number"),
        ({"max_cost": 1}, "max_cost needs prices"),
        ({"max_cost": float("nan"), "prices": PRICES}, "max_cost is nan: write a number"),
        ({"prices": {"model-a": 2.5}}, "prices['model-a'] is 2.5: write a mapping with input, output"),
        ({"prices": {"model-a": {"input": 2.5}}}, "prices['model-a'] is {'input': 2.5}: write a mapping with"),
        ({"prices": {"model-a": {"input": 2.5, "output": -1}}}, "prices['model-a']['output'] is -1: write a number"),
        ({"prices": [PRICES]}, "write a mapping from name to input, output"),
        (
            {"per_model": {"model-a": {"max_tokens": 1}}},
            "per_model['model-a'] is {'max_tokens': 1}: write a mapping with",
        ),
        ({"per_model": {"model-a": {"max_calls": -1}}}, "per_model['model-a']['max_calls'] is -1: write a whole"),
        ({"per_tool": {"search": 3}}, "per_tool['search'] is 3: write a mapping with max_payload_bytes, max_calls"),
    ],
)
def test_a_setting_that_is_none_is_refused_by_name(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Budget(**settings)


def test_gates_with_equal_settings_are_equal_and_can_be_kept_in_sets() -> None:
    first, second = (Budget(max_cost=1, prices=PRICES, per_tool={"search": {"max_calls": 1}}) for _ in range(2))
    assert first == second
    assert len({first, second}) == 1


VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors" / "budget.json").read_text(encoding="utf-8"))
KINDS = {"run": "agent.run", "llm": "agent.llm", "tool": "agent.tool"}
FIELDS = {"input_tokens": "gen_ai.usage.input_tokens", "output_tokens": "gen_ai.usage.output_tokens"}
OTHER_GATES = {"set t1.closed to false", "set t1.parent_id to 'gone'", "repeat row m1"}
BY_BUDGET = {
    "remove m1.output_tokens": ["fail usage_missing"],
    "set m1.input_tokens to 0": [],
    "set m1.input_tokens to true": ["fail usage_invalid"],
    "set m1.input_tokens to -1": ["fail usage_negative"],
    "set r1.input_tokens to 412": ["fail rollup_mismatch", "off root_usage"],
    "ceiling input_tokens 1314": ["fail ceiling"],
    "ceiling input_tokens 1315": [],
    "ceiling output_tokens 225": ["fail ceiling"],
    "ceiling tool_payload_bytes 1539": ["fail ceiling"],
}


def golden(change: str = "") -> tuple[Run, dict[str, Any]]:
    """The golden run and its ceilings, with one change to it."""
    rows: dict[str, dict[str, Any]] = {row["span_id"]: dict(row) for row in VECTORS["rows"]}
    ceilings = {f"max_{name}": limit for name, limit in VECTORS["ceilings"].items()}
    if edit := re.fullmatch(r"set (\w+)\.(\w+) to (\S+)", change):
        rows[edit[1]][edit[2]] = json.loads(edit[3])
    elif edit := re.fullmatch(r"remove (\w+)\.(\w+)", change):
        del rows[edit[1]][edit[2]]
    elif edit := re.fullmatch(r"ceiling (\w+) (\d+)", change):
        ceilings[f"max_{edit[1]}"] = int(edit[2])
    spans: dict[str, Span] = {}
    for span_id, row in rows.items():
        attributes = {FIELDS.get(key, key): value for key, value in row.items() if key.endswith(("_tokens", "_bytes"))}
        parent = spans.get(row["parent_id"])
        spans[span_id] = span(name=KINDS[row["kind"]], parent=parent, scope="spangate", attributes=attributes)
        classify(spans[span_id])
    return run_of(list(spans.values())), ceilings


def test_the_golden_run_uses_what_it_says() -> None:
    run, ceilings = golden()
    expect = VECTORS["expect"]
    usage = count(run)
    assert found(run, **ceilings) == []
    assert len(run.spans) == expect["spans"]
    assert (usage.input_tokens, usage.output_tokens) == (expect["input_tokens"], expect["output_tokens"])
    assert usage.tool_payload_bytes == expect["tool_payload_bytes"]


@pytest.mark.parametrize("mutation", VECTORS["mutations"], ids=[row["change"] for row in VECTORS["mutations"]])
def test_the_golden_run_with_one_change(mutation: dict[str, Any]) -> None:
    if mutation["change"] in OTHER_GATES:
        assert mutation["expect"].startswith("fail")
        return
    run, ceilings = golden(mutation["change"])
    findings = [finding for finding in found(run, **ceilings) if "not_evaluable" not in finding]
    assert findings == BY_BUDGET[mutation["change"]]
    assert mutation["expect"].removeprefix("default: ").startswith("fail" if findings else "pass")
    if "input_tokens" in mutation:
        assert count(run).input_tokens == mutation["input_tokens"]


def without_usage(spans: list[Span], span_id: str | None) -> list[Span]:
    """The same spans without token counts; with ``span_id`` only those of that span."""
    return [
        replace(each, attributes=_uncounted(each.attributes)) if span_id in {None, each.hex_id} else each
        for each in spans
    ]


def _uncounted(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if not re.search(r"\.usage\.|_usage\.|token_count", key)}


CEILINGS = [row for row in recordings.labels("labels-budget") if row.get("counted") or row["findings_any"]]
DROPPED = [row for row in recordings.labels("labels-mutations") if row["mutate"]["kind"] == "drop_usage"]


@pytest.mark.parametrize(
    "row",
    [*CEILINGS, *DROPPED],
    ids=lambda row: " ".join(map(str, (row["path"], row["policy"], row.get("mutate", "")))),
)
def test_recorded_runs_under_a_ceiling(row: dict[str, Any]) -> None:
    spans = recordings.spans(row["path"])
    if "mutate" in row:
        spans = without_usage(spans, row["mutate"].get("span"))
    findings: list[Finding] = list(Budget(**row["policy"])(run_of(spans)))
    failing = {finding.code for finding in findings if (finding.level or DEFAULT_LEVELS[finding.code]) == "fail"}
    assert failing == set(row["findings_any"])
    assert {finding.code for finding in findings} >= set(row.get("warnings", ()))
