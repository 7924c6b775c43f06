"""The same request has the same identity by every source: real clients, and OpenTelemetry's instrumentations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from spangate._canonical import canonical_hash
from tests.frameworks.asking import MODEL, REQUESTS, SOURCES, SYSTEM, USER, ask, ask_async, instrumented, wired
from tests.frameworks.gated import Gated
from tests.model_server import ModelServer, fails, says

PROMPT = canonical_hash({"system": SYSTEM, "user": USER, "tools": None})
CONTENT = {"gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.output.messages"}
TOOLS = [{"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}]


def released_call(gated: Gated) -> ReadableSpan:
    """Return the span of the last model call that was released."""
    return [span for span in gated.exported() if (span.attributes or {}).get("gen_ai.operation.name") == "chat"][-1]


def asked(gated: Gated, api: str, source: str, asking: Callable[..., None] = ask, **more: Any) -> dict[str, Any]:
    """Ask once, and return what is written on the released span of the call."""
    environment, block = SOURCES[source]
    with (
        ModelServer({MODEL: [says("Yes.")]}) as server,
        instrumented(gated.provider, **environment),
        gated.tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}),
        block(),
    ):
        asking(server.url, api, model=MODEL, **REQUESTS[api], **more)
    return dict(released_call(gated).attributes or {})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streaming"])
@pytest.mark.parametrize("asking", [ask, ask_async])
@pytest.mark.parametrize("api", REQUESTS)
def test_one_prompt_has_one_hash_by_every_source(
    api: str, asking: Callable[..., None], source: str, *, stream: bool, gated: Gated
) -> None:
    known = asked(gated, api, source, asking, **({"stream": True} if stream else {}))
    assert known["fingerprint.source"] == source
    assert known["prompt.hash"] == PROMPT
    assert known["prompt.text_hash"] == canonical_hash({"system": SYSTEM, "user": USER})
    assert known["gen_ai.request.model"] == MODEL
    assert known["fingerprint.missing_model"] == "false"
    assert bool(CONTENT & known.keys()) is (source == "attributes")


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_one_request_has_one_tuple_by_every_source(api: str, gated: Gated) -> None:
    tuples = [asked(gated, api, source, temperature=0)["fingerprint.tuple"] for source in SOURCES]
    other = asked(gated, api, "wire", temperature=0.5)["fingerprint.tuple"]
    assert len({*tuples}) == 1
    assert other not in tuples


@pytest.mark.parametrize("api", ["responses"])
@pytest.mark.parametrize("source", ["attributes", "hook"])
def test_tools_are_in_the_hash_of_the_prompt_and_not_in_that_of_its_text(api: str, source: str, gated: Gated) -> None:
    with_tools = asked(gated, api, source, tools=TOOLS)
    assert with_tools["prompt.hash"] != PROMPT
    assert with_tools["prompt.text_hash"] == canonical_hash({"system": SYSTEM, "user": USER})
    assert with_tools["tool.schema_hash"]


def test_of_what_an_sdk_sends_again_the_last_counts(gated: Gated) -> None:
    answers = fails(429, retry_after_s=0.01), says("Yes.")
    with (
        ModelServer({MODEL: answers}) as server,
        instrumented(gated.provider),
        wired(),
        gated.tracer.start_as_current_span("handler"),
    ):
        ask(server.url, "chat", model=MODEL, **REQUESTS["chat"], max_retries=1)
        sent = len(server.requests)
    assert sent == 2
    assert dict(released_call(gated).attributes or {})["prompt.hash"] == PROMPT


def test_nothing_of_the_words_is_exported_with_the_hook_alone(gated: Gated) -> None:
    asked(gated, "chat", "hook")
    everything = json.dumps([json.loads(span.to_json()) for span in gated.exported()])
    assert SYSTEM not in everything
    assert USER not in everything
