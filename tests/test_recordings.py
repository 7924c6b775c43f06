"""Recorded runs of real frameworks and shapes of public bug reports, each through a real provider and the gate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import Gate, GateSpanProcessor, default_gates
from spangate.gates import Budget, Cardinality
from tests import recordings
from tests.faults import with_fault
from tests.replay import Played, environment, play

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")

_SHAPES = json.loads((Path(__file__).parent / "data" / "recordings" / "shapes.json").read_text(encoding="utf-8"))


def gates_for(policy: Mapping[str, int]) -> list[Gate]:
    gates: list[Gate] = [gate for gate in default_gates() if type(gate) not in (Budget, Cardinality)]
    budget = Budget(max_input_tokens=policy.get("max_input_tokens"), max_output_tokens=policy.get("max_output_tokens"))
    return [*gates, budget, Cardinality(max_span_bytes=policy.get("max_span_attr_bytes", 4 << 20))]


def played(rows: list[Mapping[str, Any]], expectation: Mapping[str, Any]) -> Played:
    with environment(expectation.get("environment") or {}):
        exporter = InMemorySpanExporter()
        gate = GateSpanProcessor(
            exporter, gates=gates_for(expectation.get("policy") or {}), grace_s=0.05, settle_s=0.02
        )
        return play(rows, gate, exporter, expectation.get("trigger", "root_end"))


def check(expectation: Mapping[str, Any], result: Played) -> None:
    assert result.breaches == []
    assert result.result == expectation["expect"], (result.findings, result.warnings)
    any_of = set(expectation.get("findings_any") or ())
    if expectation["expect"] == "fail" and any_of:
        assert result.findings & any_of
    assert set(expectation.get("warnings") or ()) <= result.warnings
    for side, number in (expectation.get("counted") or {}).items():
        assert result.counted.get(side) == number


def _name(row: Mapping[str, Any]) -> str:
    fault = row.get("mutate") or {}
    return "-".join([row.get("path") or row["name"], *fault.values(), *map(str, (row.get("policy") or {}).values())])


def _counting(kind: str) -> list[Mapping[str, Any]]:
    return [row for row in recordings.labels(kind) if not row.get("blind")]


@pytest.mark.parametrize("label", _counting("labels"), ids=_name)
def test_a_recorded_run_gets_its_verdict(label: Mapping[str, Any]) -> None:
    check(label, played(list(recordings.rows(label["path"])), label))


@pytest.mark.parametrize("label", _counting("labels-budget"), ids=_name)
def test_a_recorded_run_keeps_or_breaks_its_budget(label: Mapping[str, Any]) -> None:
    check(label, played(list(recordings.rows(label["path"])), label))


@pytest.mark.parametrize("label", _counting("labels-mutations"), ids=_name)
def test_one_fault_in_a_healthy_run_is_found(label: Mapping[str, Any]) -> None:
    fault = label["mutate"]
    rows = with_fault(list(recordings.rows(label["path"])), fault["kind"], fault.get("span"))
    check(label, played(list(rows), label))


@pytest.mark.parametrize("shape", [shape for shape in _SHAPES if not shape.get("blind")], ids=_name)
def test_a_reported_shape_gets_its_verdict(shape: Mapping[str, Any]) -> None:
    check(shape, played(shape["rows"], shape))
