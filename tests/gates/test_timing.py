"""Timing: no span ends before it starts."""

from __future__ import annotations

import pytest

from spangate._records import Span
from spangate.gates.timing import Timing
from tests.spans import run_of, span

FINDS = [
    pytest.param(span("tool", start=2.0, end=1.0), "ends 1 s before it starts", id="a clock that went back"),
    pytest.param(span("tool", start_ns=10, end_ns=9), "ends 0 µs before it starts", id="by a nanosecond"),
]
STAYS_SILENT = [
    pytest.param(span("tool", start=1.0, end=2.0), id="an ordinary span"),
    pytest.param(span("tool", start=1.0, end=1.0), id="no time at all"),
    pytest.param(span("tool", start=1.0, end=None), id="still open"),
]


@pytest.mark.parametrize(("given", "detail"), FINDS)
def test_finds(given: Span, detail: str) -> None:
    root = span("agent", end=10.0)
    assert [(f.code, f.span, f.detail) for f in Timing()(run_of([root, given]))] == [
        ("timing.inverted_span", given, detail)
    ]


@pytest.mark.parametrize("given", STAYS_SILENT)
def test_stays_silent(given: Span) -> None:
    assert list(Timing()(run_of([span("agent", end=10.0), given]))) == []
