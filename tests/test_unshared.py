"""Attributes are read without a copy where nobody else can change them, and copied wherever somebody can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from spangate._settle.look import read

Held = dict[int, Any]


class Holder(SpanProcessor):
    """Holds ended spans by their ids, as the gate does."""

    def __init__(self) -> None:
        self.held: Held = {}

    def on_end(self, span: ReadableSpan) -> None:
        self.held[span.context.span_id] = span


def recorded(*, keep_live: bool = False) -> tuple[Held, list[Any]]:
    """Record three spans. Returns what a processor holds of them, and the live ones if they are to be kept."""
    holder = Holder()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(holder)
    live: list[Any] = []
    for number in range(3):
        span = provider.get_tracer("test").start_span("tool", attributes={"number": number})
        span.end()
        if keep_live:
            live.append(span)
        del span
    return holder.held, live


def is_shared(held: Held) -> list[bool]:
    """Say of each span whether its record has the attributes of the span itself."""
    records = read(held.values()).spans
    return [record.attributes is record.source._attributes._dict for record in records]


def test_what_one_container_holds_is_not_copied() -> None:
    held, _ = recorded()
    assert is_shared(held) == [True] * 3


@pytest.mark.parametrize(
    "also",
    [
        pytest.param(lambda span: span, id="the span"),
        pytest.param(lambda span: [span], id="a list with the span"),
        pytest.param(lambda span: span._attributes, id="its attributes"),
        pytest.param(lambda span: span.attributes, id="a view of its attributes"),
    ],
)
def test_what_somebody_else_holds_is_copied(also: Callable[[Any], Any]) -> None:
    held, _ = recorded()
    somebody_has = also(next(iter(held.values())))
    assert is_shared(held) == [False, True, True]
    assert somebody_has is not None


def test_what_the_program_can_reach_by_its_live_span_is_copied() -> None:
    held, live = recorded(keep_live=True)
    assert is_shared(held) == [False] * 3
    assert len(live) == 3


def test_a_copy_does_not_change_with_the_span() -> None:
    held, live = recorded(keep_live=True)
    records = read(held.values()).spans
    live[0]._attributes._dict["number"] = "redacted"
    assert [record.attributes["number"] for record in records] == [0, 1, 2]
