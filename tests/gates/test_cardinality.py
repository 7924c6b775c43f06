"""Cardinality: spans over a size in bytes, and evidence that was thrown away."""

from __future__ import annotations

from typing import Any

import pytest

from spangate._records import Event, Span
from spangate.gates.cardinality import Cardinality
from tests.spans import run_of, span

EXACT = span(attributes={"key": "é" * 3}, events=[Event("e", {"k": "v"})])  # 3 + 6 + 1 + 1 + 1 bytes
HUGE = span(attributes={"gen_ai.input.messages": "x" * (6 << 20)})

FINDS = [
    pytest.param(HUGE, {}, "span_bytes", f"{(6 << 20) + 21} bytes > {4 << 20}", id="a file in a prompt"),
    pytest.param(EXACT, {"max_span_bytes": 11}, "span_bytes", "12 bytes > 11", id="bytes count, not characters"),
    pytest.param(span(attributes={"a": 1}), {"max_span_bytes": 0}, "span_bytes", "9 bytes > 0", id="a ceiling of zero"),
    pytest.param(
        span(dropped_attributes=3),
        {},
        "attributes_dropped",
        "lost 3 attributes to the limits of the SDK: raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, or record less",
        id="attributes",
    ),
    pytest.param(
        span(dropped_events=2, dropped_links=1),
        {},
        "attributes_dropped",
        "lost 2 events, 1 link to the limits of the SDK: "
        "raise OTEL_SPAN_EVENT_COUNT_LIMIT, OTEL_SPAN_LINK_COUNT_LIMIT, or record less",
        id="events and links",
    ),
]
STAYS_SILENT = [
    pytest.param(EXACT, {"max_span_bytes": 12}, id="exactly the ceiling"),
    pytest.param(HUGE, {"max_span_bytes": None}, id="no ceiling"),
    pytest.param(span(), {"max_span_bytes": 0}, id="nothing on it"),
    pytest.param(span(attributes={"a": None, "b": object(), "c": [float("nan")]}), {}, id="odd values"),
]


@pytest.mark.parametrize(("given", "settings", "code", "detail"), FINDS)
def test_finds(given: Span, settings: dict[str, Any], code: str, detail: str) -> None:
    findings = list(Cardinality(**settings)(run_of([given])))
    assert [(f.code, f.span, f.detail, f.level) for f in findings] == [(f"cardinality.{code}", given, detail, None)]


@pytest.mark.parametrize(("given", "settings"), STAYS_SILENT)
def test_stays_silent(given: Span, settings: dict[str, Any]) -> None:
    assert list(Cardinality(**settings)(run_of([given]))) == []


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "4 MiB"])
def test_a_ceiling_that_is_none_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"max_span_bytes is .*: write a whole number"):
        Cardinality(max_span_bytes=wrong)
