"""Causes put the steps of an agent in order; clocks only where nothing else does."""

from __future__ import annotations

import pytest

from spangate._records import Span
from spangate.compare._order import Event, rank
from tests.spans import span


def ranks(spans: dict[str, Span], causes: dict[str, str], *, asked: str = "") -> str:
    """Return what has which rank, one letter a span: ``a bc`` for a first, then b and c in no order."""
    events = {
        name: Event(made, is_generation=made.role == "generation", is_asked=name in asked)
        for name, made in spans.items()
    }
    known = {spans[name]: [spans[cause] for cause in by] for name, by in causes.items()}
    rank(sorted(events.values(), key=lambda event: event.span.start_ns), known)
    levels = sorted({event.rank for event in events.values()})
    return " ".join("".join(name for name, event in events.items() if event.rank == level) for level in levels)


def tool(start: float, end: float) -> Span:
    return span("tool", start=start, end=end)


def model(start: float, end: float) -> Span:
    return span("generation", start=start, end=end)


@pytest.mark.parametrize(
    ("spans", "causes", "asked", "order"),
    [
        pytest.param({"a": tool(0, 1), "b": tool(2, 3)}, {}, "", "a b", id="one after the other"),
        pytest.param({"a": tool(0, 1), "b": tool(1, 3)}, {}, "", "a b", id="at the moment at which the other ends"),
        pytest.param({"a": tool(0, 2), "b": tool(1, 3)}, {}, "", "ab", id="at once"),
        pytest.param({"a": tool(0, 0), "b": tool(0, 0)}, {}, "", "ab", id="by a clock too coarse to tell"),
        pytest.param(
            {"a": tool(0, 9), "b": tool(1, 2), "c": tool(3, 4)}, {}, "", "ab c", id="two in turn beside a long one"
        ),
        pytest.param(
            {"m": model(0, 1), "a": tool(2, 3), "b": tool(4, 5)}, {}, "ab", "m ab", id="asked for, so in no order"
        ),
        pytest.param(
            {"m": model(0, 1), "a": tool(2, 3), "n": model(4, 5), "b": tool(6, 7)}, {}, "ab", "m a n b", id="two turns"
        ),
        pytest.param(
            {"m": model(0, 1), "a": tool(2, 3), "b": tool(4, 5)}, {"a": "m", "b": "m"}, "", "m ab", id="one cause"
        ),
        pytest.param(
            {"m": model(5, 6), "a": tool(0, 1), "n": model(2, 3)},
            {"a": "m", "n": "a"},
            "",
            "m a n",
            id="causes against the clock",
        ),
        pytest.param(
            {"m": model(0, 1), "n": model(0, 1), "a": tool(2, 3), "b": tool(4, 5), "o": model(4, 5), "p": model(6, 7)},
            {"a": "m", "b": "n", "o": "a", "p": "b"},
            "",
            "mn ab op",
            id="two conversations side by side",
        ),
        pytest.param(
            {"a": tool(0, 1), "b": tool(2, 3), "c": tool(4, 5)}, {"a": "b", "b": "a"}, "", "ac b", id="a circle"
        ),
    ],
)
def test_ranks(spans: dict[str, Span], causes: dict[str, str], asked: str, order: str) -> None:
    assert ranks(spans, causes, asked=asked) == order
