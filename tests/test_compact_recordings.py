"""Every recorded run in its compact form: nothing of what was said in it is left, and what it weighs then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor
from spangate._compact.form import compact, compact_bytes
from spangate._dialects import dialect_of
from spangate._payload import span_bytes
from spangate._records import Span
from tests import recordings
from tests.replay import play

LONGEST = 640
"""Characters of the longest text that stays: graphs of LangGraph and metadata that LangChain writes."""
SHORT = 12
"""Shorter texts (a city, a role, a number) stand in names as well, and prove nothing."""
README = Path(__file__).parents[1] / "README.md"


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in a payload, of JSON texts what they say."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        if isinstance(read, (dict, list)):
            yield from texts_of(read)
        else:
            yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(texts_of, value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        yield from chain.from_iterable(map(texts_of, value))


def said_on(span: Span) -> Iterator[str]:
    """Yield what the dialect of a span reads of prompts, arguments and results."""
    dialect = dialect_of(span)
    if span.role == "generation":
        request, turn = dialect.request(span), dialect.turn(span)
        calls = [*(turn.asked or ()), *(turn.received or ())]
        yield from texts_of([[request.system, request.messages], [[one.arguments, one.result] for one in calls]])
    if span.role == "tool":
        call = dialect.tool_call(span)
        yield from texts_of([call.arguments, call.result, dialect.tool_result(span)])


def left_on(span: Span) -> Iterator[str]:
    """Yield every text of a span that leaves."""
    yield span.status_description
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        for key, value in attributes.items():
            if not key.startswith("spangate."):
                yield from (value,) if isinstance(value, str) else texts_of(value)


def labels_of(span: Span) -> str:
    """Return what a span is called and what it names: that stays by design."""
    called = {*recorded_names(span.attributes), span.name}
    return "\n".join(called)


def recorded_names(attributes: Mapping[str, Any]) -> Iterator[str]:
    for key, value in attributes.items():
        if key.endswith((".name", ".id", ".model", "_id", "_name", ".msg", ".cause", ".type")) and isinstance(
            value, str
        ):
            yield value


@pytest.mark.parametrize("name", recordings.names())
def test_nothing_of_what_was_said_survives(name: str) -> None:
    spans = recordings.spans(name)
    said = {text for span in spans for text in said_on(span) if len(text) >= SHORT}
    labels = "\n".join(map(labels_of, spans))
    secrets = {text for text in said if text not in labels}
    for span in spans:
        for left in left_on(compact(span)):
            assert len(left) <= LONGEST, f"{span}: {left[:200]}"
            found = [secret for secret in secrets if secret in left]
            assert not found, f"{span}: {found[:3]} in {left[:200]}"


def test_the_recordings_do_say_something() -> None:
    told = {
        name.partition("/")[0] for name in recordings.names() for span in recordings.spans(name) if any(said_on(span))
    }
    assert len(told) >= 20


@pytest.mark.parametrize("name", [name for name in recordings.names() if name.endswith("/basic")])
def test_a_compact_form_weighs_what_was_foretold(name: str) -> None:
    for span in recordings.spans(name):
        form = compact(span)
        told = len("spangate.outcome") + len(str(form.attributes.get("spangate.outcome", "")))
        extra = told if "spangate.outcome" in form.attributes else 0
        assert compact_bytes(span) == span_bytes(form) - extra


def left_by(name: str, *, is_compact: bool) -> Sequence[ReadableSpan]:
    exporter = InMemorySpanExporter()
    gate = GateSpanProcessor(exporter, compact=is_compact, settle_s=0.0)
    return play([*recordings.rows(name)], gate, exporter, "shutdown").exported


def sent(family: str) -> tuple[int, int]:
    """Return the bytes of OTLP that the healthy runs of a family leave as, whole and compact."""
    names = [name for name in recordings.names() if name.startswith(f"{family}/")]
    whole = compacted = 0
    for name in names:
        released = left_by(name, is_compact=False)
        if not any(span.name.startswith("refused ") for span in released):
            whole += encode_spans(released).ByteSize()
            compacted += encode_spans(left_by(name, is_compact=True)).ByteSize()
    return whole, compacted


@pytest.mark.parametrize(("family", "least"), [("langchain-oi", 2.0), ("langchain-tl", 1.2)])
def test_compact_runs_of_langchain_leave_as_fewer_bytes(family: str, least: float) -> None:
    whole, compacted = sent(family)
    print(f"{family}: {whole:,} bytes whole, {compacted:,} compact: {whole / compacted:.1f} times fewer")  # noqa: T201  to be seen with -rP
    assert whole / compacted > least
    assert f"{whole / compacted:.1f}" in README.read_text(encoding="utf-8").partition("leave as ")[2][:120]
