"""A verdict as attributes: clean text only, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._records import Finding, Totals, Verdict
from spangate._verdict.account import (
    clean,
    detail,
    evaluation,
    verdict_attributes,
    verdict_span_attributes,
    verdict_span_id,
)
from tests.spans import span

HALF = "half \ud83e"
ROOT = span("agent", "cook", span_id=0xC0FFEE)
PASSED = Verdict(
    verdict="pass",
    run_id="run-1",
    run_name="cook",
    trigger="root_end",
    root=ROOT,
    findings=(),
    gaps=(),
    gates={},
    totals=Totals(1, 1),
    policy="0123456789ab",
)
FAILED = replace(
    PASSED,
    verdict="fail",
    findings=(
        Finding("forest.late_child", ROOT, "too late", "fail"),
        Finding("completeness.open_span", ROOT, "open", "fail"),
        Finding("forest.late_child", None, "again", "fail"),
        Finding("encoding.lone_surrogate", ROOT, "odd", "warn"),
    ),
    gates={"forest": "fail", "budget": "not_evaluable"},
    totals=Totals(5, 4, 12, 0, 0),
    cluster="ba9876543210",
    spans_withheld=4,
    supersedes="00000000000000aa",
)


def test_what_a_verdict_says() -> None:
    assert verdict_attributes(FAILED) == {
        "spangate.verdict": "fail",
        "spangate.run_id": "run-1",
        "spangate.run_name": "cook",
        "spangate.trigger": "root_end",
        "spangate.findings": ["completeness.open_span", "forest.late_child"],
        "spangate.warnings": ["encoding.lone_surrogate"],
        "spangate.details": [
            "forest.late_child | cook | 0000000000c0ffee | too late",
            "completeness.open_span | cook | 0000000000c0ffee | open",
            "forest.late_child |  |  | again",
            "encoding.lone_surrogate | cook | 0000000000c0ffee | odd",
        ],
        "spangate.gates": ["forest=fail", "budget=not_evaluable"],
        "spangate.spans_started": 5,
        "spangate.spans_ended": 4,
        "spangate.spans_withheld": 4,
        "spangate.policy": "0123456789ab",
        "spangate.input_tokens": 12,
        "spangate.output_tokens": 0,
        "spangate.tool_payload_bytes": 0,
        "spangate.cluster": "ba9876543210",
        "spangate.supersedes": "00000000000000aa",
    }


def test_what_is_not_known_is_left_out() -> None:
    absent = {
        "spangate.input_tokens",
        "spangate.output_tokens",
        "spangate.tool_payload_bytes",
        "spangate.cluster",
        "spangate.supersedes",
    }
    assert verdict_attributes(FAILED).keys() - verdict_attributes(PASSED).keys() == absent


def test_a_verdict_span_is_a_guardrail_too() -> None:
    found = verdict_span_attributes(FAILED)
    assert found["openinference.span.kind"] == "GUARDRAIL"
    assert found["input.value"] == "cook"
    assert found["output.value"].startswith("fail: forest.late_child: too late; completeness.open_span: open")


def test_a_verdict_is_an_evaluation_too() -> None:
    found = evaluation(FAILED)
    assert found["gen_ai.evaluation.name"] == "spangate"
    assert found["gen_ai.evaluation.score.label"] == "fail"
    assert found["gen_ai.evaluation.explanation"].startswith("forest.late_child: too late")


@given(st.lists(st.text(st.characters(), max_size=3000), min_size=1, max_size=40))
def test_whatever_spans_hold_a_verdict_can_be_sent_and_is_bounded(texts: list[str]) -> None:
    findings = tuple(Finding(f"forest.{text}"[:40], span("tool", text + HALF), text + HALF, "fail") for text in texts)
    found = verdict_span_attributes(replace(FAILED, findings=findings, run_name=texts[0] + HALF))
    everything = [found, dict(evaluation(replace(FAILED, findings=findings)))]
    for text in _texts(everything):
        text.encode()
    assert len(found["spangate.details"]) <= 32
    assert max(map(len, found["spangate.details"])) <= 1024
    assert len(found["output.value"]) <= 4096


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in _texts(item)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), ("grün", "grün"), (HALF, "half ?"), ("\ud83e\udd14", "??"), ("", "")],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_a_detail_is_one_line_of_four_columns() -> None:
    assert detail(Finding("a.b", ROOT, "what")) == "a.b | cook | 0000000000c0ffee | what"


def test_the_span_id_of_a_verdict_follows_from_run_and_number() -> None:
    assert verdict_span_id("629f6fbed82c07cd", 0) == 0x5B4ABB70E28A5893
    ids = {verdict_span_id(run_id, number) for run_id in ("a", "b", HALF) for number in (0, 1)}
    assert len(ids) == 6
    assert all(0 < one < 1 << 64 for one in ids)
