"""Encoding: half characters and JSON that was cut, wherever a span has text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spangate._records import Event, Span
from spangate.gates.encoding import Encoding
from tests.spans import run_of, span

HALF = "half an emoji \ud83e"
CUT = '[{"role": "user", "content": "what is the wea'


def found(given: Span) -> list[tuple[str, str]]:
    return [(finding.code, finding.detail) for finding in Encoding()(run_of([given]))]


FINDS: list[tuple[str, Callable[[], Span], list[str]]] = [
    ("half a character", lambda: span(attributes={"gen_ai.output.messages": HALF}), ["lone_surrogate"]),
    ("in a list of texts", lambda: span(attributes={"reasons": ("stop", HALF)}), ["lone_surrogate"]),
    ("in an event", lambda: span(events=[Event("choice", {"message": HALF})]), ["lone_surrogate"]),
    ("in the name", lambda: span(name=HALF), ["lone_surrogate"]),
    ("in the status", lambda: span(status="ERROR", status_description=HALF), ["lone_surrogate"]),
    ("cut JSON", lambda: span(attributes={"gen_ai.input.messages": CUT}), ["truncated_json"]),
    ("cut JSON in an event", lambda: span(events=[Event("choice", {"message": CUT})]), ["truncated_json"]),
    ("both in one text", lambda: span(attributes={"a": CUT + HALF}), ["lone_surrogate", "truncated_json"]),
    (
        "once a span",
        lambda: span(attributes={"a": HALF, "b": HALF, "c": CUT, "d": CUT}),
        ["lone_surrogate", "truncated_json"],
    ),
]

STAYS_SILENT: list[tuple[str, Callable[[], Span]]] = [
    ("no text at all", span),
    ("whole characters", lambda: span(name="été 🦊", attributes={"a": "日本", "b": ("é", 1)})),
    ("whole JSON", lambda: span(attributes={"a": '{"b": ["c"]}', "d": "[]"})),
    ("a log line", lambda: span(attributes={"a": "[INFO] started"})),
    ("a repr", lambda: span(attributes={"a": "{'b': 'c"})),
    ("odd values", lambda: span(attributes={"a": None, "b": b"{", "c": float("nan"), "d": {"e": CUT}, "f": ""})),
]


@pytest.mark.parametrize(("make", "codes"), [case[1:] for case in FINDS], ids=[case[0] for case in FINDS])
def test_finds(make: Callable[[], Span], codes: list[str]) -> None:
    assert [code for code, _ in found(make())] == [f"encoding.{code}" for code in codes]


@pytest.mark.parametrize("make", [case[1] for case in STAYS_SILENT], ids=[case[0] for case in STAYS_SILENT])
def test_stays_silent(make: Callable[[], Span]) -> None:
    assert found(make()) == []


def test_the_finding_names_the_attribute_and_repeats_nothing_of_the_text() -> None:
    assert found(span(attributes={"fine": "x", "bad": HALF})) == [
        ("encoding.lone_surrogate", "half a character in bad")
    ]
