"""Messages that an instrumentation emits as log records make a model call readable that records none itself.

The records are those of opentelemetry-instrumentation-openai-v2 2.4b0 as it emitted them in a run with two parallel
calls of a tool: by default with and without content, and by the experimental conventions. It cannot be installed beside
the frameworks of the other tests; here they go through the SDK's logger again. The instrumentation that replaces it is
tested as it is, in ``tests/frameworks/test_log_events.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import Span

from spangate import Finding, Run, default_gates
from spangate._cites import cites
from tests.live.gated import Gated
from tests.logs.logged import Logged

RECORDED = Path(__file__).parents[1] / "data" / "log_records"
CALLS = ["call-m-0-0", "call-m-0-1"]
SCOPE = "opentelemetry.instrumentation.openai_v2"


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def converse(it: Gated, rows: Sequence[dict[str, Any]] = (), tools: Sequence[str] = CALLS, own: Any = ()) -> None:
    """Have an agent ask a model twice, with the calls of tools in between, and the records that tell of it."""
    with it.open("agent") as agent:
        for number in range(2):
            with it.open("generation", f"chat {number}", agent, scope=SCOPE) as chat:
                chat.set_attributes(dict(own))
                emit(it, chat, [row for row in rows if row["call"] == number])
            for call_id in tools if number == 0 else ():
                words = {"gen_ai.tool.name": "look_up", "gen_ai.tool.call.id": call_id}
                it.ended("tool", under=agent, attributes=words)
    assert it.flush()


def emit(it: Gated, chat: Span, rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        assert isinstance(it, Logged)
        it.log(row["body"], chat, event_name=row["event_name"], attributes=row["attributes"])


class Reads:
    """A gate that finds nothing, and remembers how often the calls of tools ran, and the events of model calls."""

    def __call__(self, run: Run) -> Iterator[Finding]:
        found = cites(run)
        assert not found.blind
        assert all(not call.unchecked for call in found.calls)
        self.ran = {call.call_id: (call.answered, call.executed) for call in found.calls}
        self.events = [len(span.events) for span in run.of_role("generation")]
        yield from ()


@pytest.mark.parametrize("name", ["openai-v2", "openai-v2-nocontent", "openai-v2exp"])
def test_what_the_model_called_is_known_from_log_records_alone(name: str) -> None:
    it = Logged(gates=default_gates())
    converse(it, recorded(name))
    assert it.verdicts[0].gates["completeness"] == "pass"
    assert [gap.code for gap in it.verdicts[0].gaps if gap.gate == "completeness"] == []
    it = Logged(gates=[reads := Reads()])
    converse(it, recorded(name))
    assert reads.ran == dict.fromkeys(CALLS, (1, 1))


@pytest.mark.parametrize("name", ["openai-v2", "openai-v2-nocontent", "openai-v2exp"])
def test_a_call_that_no_tool_span_shows_refuses_the_run(name: str) -> None:
    it = Logged()
    converse(it, recorded(name), tools=CALLS[:1])
    assert [one.code for one in it.verdicts[0].failures] == ["completeness.cited_tool_missing"]
    assert it.left == []


def test_without_the_records_nothing_can_be_said_of_it() -> None:
    it = Gated()
    converse(it, tools=CALLS[:1])
    assert [gap.code for gap in it.verdicts[0].gaps] == ["completeness.cited_tool_missing"]


@pytest.mark.parametrize(("name", "has_prompt"), [("openai-v2", True), ("openai-v2-nocontent", False)])
def test_the_prompt_is_fingerprinted_and_leaves_once(name: str, has_prompt: bool) -> None:  # noqa: FBT001
    it = Logged()
    rows = recorded(name)
    converse(it, rows)
    chat = it.one("chat 0")
    assert ("prompt.hash" in (chat.attributes or {})) is has_prompt
    assert not [key for key in chat.attributes or {} if key.startswith("gen_ai.") and "messages" in key]
    assert chat.events == ()
    assert it.left == [row["body"] for row in rows]


def test_the_prompt_is_the_one_that_the_span_would_have_recorded_itself() -> None:
    it, other = Logged(), Gated()
    converse(it, recorded("openai-v2exp"))
    messages = recorded("openai-v2exp")[0]["attributes"]["gen_ai.input.messages"]
    converse(other, own={"gen_ai.input.messages": json.dumps(messages)})
    keys = ("prompt.hash", "prompt.text_hash")
    assert [it.attributes("chat 0")[key] for key in keys] == [other.attributes("chat 0")[key] for key in keys]


def test_messages_of_the_span_itself_win() -> None:
    it, other = Logged(gates=[reads := Reads()]), Gated()
    own = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "mine"}]}])}
    converse(it, recorded("openai-v2exp"), own=own)
    converse(other, own=own)
    assert it.attributes("chat 0")["prompt.hash"] == other.attributes("chat 0")["prompt.hash"]
    assert reads.events == [0, 0]


def test_a_record_weighs_nothing_on_its_span() -> None:
    it = Logged(gates=default_gates())
    rows = [{"call": 0, "event_name": "gen_ai.user.message", "attributes": {}, "body": {"content": "x" * (5 << 20)}}]
    converse(it, rows)
    assert it.verdicts[0].gates["cardinality"] == "pass"


def test_the_name_of_an_event_may_be_an_attribute_and_its_body_json() -> None:
    it = Logged(gates=[reads := Reads()])
    rows = recorded("openai-v2")
    for row in rows:
        row["attributes"]["event.name"] = row.pop("event_name")
        row["event_name"], row["body"] = None, json.dumps(row["body"])
    converse(it, rows)
    assert reads.ran == dict.fromkeys(CALLS, (1, 1))


HOSTILE = [
    *(None, 7, "[", "half \ud83e", ["x"], {"message": 7}, {"content": {"a": 1}}, {7: "x"}, object()),
    *({"content": object()}, {"message": {7: {1, 2}}}, {"message": {"tool_calls": [7, {"function": {"name": 7}}]}}),
]


@pytest.mark.parametrize("body", HOSTILE, ids=map(str, range(len(HOSTILE))))
@pytest.mark.parametrize("event_name", ["gen_ai.choice", "gen_ai.tool.message"])
def test_hostile_events_say_nothing(body: Any, event_name: str) -> None:
    it = Logged(gates=default_gates())
    converse(it, [{"call": number, "event_name": event_name, "attributes": {}, "body": body} for number in range(2)])
    assert it.verdicts[0].verdict == "pass"
