"""A loop of your own as spans: what they are called, what they say, and where they stand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan

import spangate
from spangate.testing import GatedProvider

GOAL = "count the eggs"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


@pytest.fixture
def provider() -> Iterator[GatedProvider]:
    with GatedProvider() as made:
        yield made


def sha(text: str) -> str:
    """A hash as every hash here is: of the text, or of canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def named(provider: GatedProvider, name: str) -> list[ReadableSpan]:
    provider.assert_released()
    return [span for span in provider.released if span.name == name]


def facts(span: ReadableSpan, *prefixes: str) -> dict[str, Any]:
    return {key: value for key, value in (span.attributes or {}).items() if key.startswith(prefixes)}


def parent_names(provider: GatedProvider) -> list[tuple[str, str | None]]:
    """The spans by name, each with its parent's, in the order of their starts."""
    names = {span.context.span_id: span.name for span in provider.released}
    spans = sorted(provider.released, key=lambda span: span.context.span_id)
    return [(span.name, None if span.parent is None else names[span.parent.span_id]) for span in spans]


def count_eggs(provider: GatedProvider, **settings: Any) -> None:
    with spangate.run(GOAL, max_iters=8, name="counter", run_id="r1", tracer_provider=provider, **settings) as run:
        for it in run.iterations():
            with it.llm(model="small", messages=[{"role": "user", "content": f"turn {it.number}"}], top_p=0.5) as call:
                call.answer("look", input_tokens=12, output_tokens=3, finish_reason="tool_call", response_id="a1")
            with it.tool("look", {"q": "eggs"}, schema=SCHEMA, call_id=f"c{it.number}", caused_by=[call]) as tool:
                tool.result({"eggs": 12})
            if it.number == 2:
                run.halt("done")


async def count_eggs_async(provider: GatedProvider) -> None:
    async with spangate.run(GOAL, max_iters=8, name="counter", run_id="r1", tracer_provider=provider) as run:
        async for it in run.iterations():
            async with it.llm(
                model="small", messages=[{"role": "user", "content": f"turn {it.number}"}], top_p=0.5
            ) as call:
                await asyncio.sleep(0)
                call.answer("look", input_tokens=12, output_tokens=3, finish_reason="tool_call", response_id="a1")
            async with it.tool("look", {"q": "eggs"}, schema=SCHEMA, call_id=f"c{it.number}", caused_by=[call]) as tool:
                tool.result({"eggs": 12})
            if it.number == 2:
                run.halt("done")


def test_the_spans_and_where_they_stand(provider: GatedProvider) -> None:
    count_eggs(provider)
    provider.assert_released()
    once = [("agent.iter", "agent.run"), ("agent.llm", "agent.iter"), ("agent.tool", "agent.iter")]
    assert parent_names(provider) == [("agent.run", None), *once, *once, ("agent.halt", "agent.run")]


def test_what_the_run_says(provider: GatedProvider) -> None:
    count_eggs(provider)
    (run,) = named(provider, "agent.run")
    assert facts(run, "agent.", "gen_ai.") == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "counter",
        "agent.run_id": "r1",
        "agent.goal_hash": sha(GOAL),
        "agent.max_iters": 8,
    }
    assert provider.verdicts[0].run_id == "r1"


def test_what_the_iterations_say(provider: GatedProvider) -> None:
    count_eggs(provider)
    first, second = (facts(span, "agent.") for span in named(provider, "agent.iter"))
    assert (first["agent.iteration"], first["agent.budget_remaining"]) == (1, 7)
    assert (second["agent.iteration"], second["agent.budget_remaining"]) == (2, 6)
    assert first["agent.work_id"] != second["agent.work_id"]


def test_what_a_call_of_a_model_says(provider: GatedProvider) -> None:
    count_eggs(provider)
    call = named(provider, "agent.llm")[0]
    assert call.kind is trace.SpanKind.CLIENT
    assert facts(call, "agent.", "gen_ai.") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.request.top_p": 0.5,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.id": "a1",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "agent.role": "assistant",
        "agent.input_hash": sha('[{"content":"turn 1","role":"user"}]'),
        "agent.output_hash": sha("look"),
    }
    assert facts(call, "fingerprint.source") == {"fingerprint.source": "explicit"}
    assert set(facts(call, "prompt.", "fingerprint.params")) == {
        "prompt.hash",
        "prompt.text_hash",
        "fingerprint.params_hash",
    }


def test_what_a_call_of_a_tool_says(provider: GatedProvider) -> None:
    count_eggs(provider)
    call, tool = named(provider, "agent.llm")[0], named(provider, "agent.tool")[0]
    assert facts(tool, "agent.", "gen_ai.", "tool_", "caused_by") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "agent.tool": "look",
        "agent.input_hash": sha('{"q":"eggs"}'),
        "agent.output_hash": sha('{"eggs":12}'),
        "agent.schema_hash": sha('{"properties":{"q":{"type":"string"}},"type":"object"}'),
        "agent.attempt": 1,
        "agent.ok": True,
        "tool_payload_bytes": 12,
        "caused_by": (format(call.context.span_id, "016x"),),
    }


def test_what_the_halt_says(provider: GatedProvider) -> None:
    count_eggs(provider)
    (halt,) = named(provider, "agent.halt")
    assert facts(halt, "agent.") == {
        "agent.halt_reason": "done",
        "agent.last_iteration": 2,
        "agent.span_still_open": False,
    }


def test_async_is_the_same() -> None:
    shapes: list[Any] = []
    runners: list[Callable[[GatedProvider], Any]] = [
        count_eggs,
        lambda provider: asyncio.run(count_eggs_async(provider)),
    ]
    for runner in runners:
        with GatedProvider() as provider:
            runner(provider)
        provider.assert_released()
        shapes.append([(span.name, facts(span, "")) for span in provider.released])
    assert shapes[0] == shapes[1]


def test_content_is_recorded_only_if_asked_for() -> None:
    with GatedProvider() as provider:
        count_eggs(provider)
    provider.assert_released()
    told = json.dumps([facts(span, "") for span in provider.released], default=str)
    assert "turn 1" not in told
    assert '"q"' not in told
    assert GOAL not in told


def test_content_is_written_as_backends_read_it(provider: GatedProvider) -> None:
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": [{"type": "text", "text": "count"}, {"type": "image", "uri": "x"}]},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
    ]
    with spangate.run(max_iters=1, record_content=True, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look", {}, call_id="c1") as tool:
                tool.result("12")
            with it.llm("small", chat, system="be kind", tools=[{"name": "look"}]) as call:
                call.answer("12", tool_calls=[{"id": "c2", "name": "look", "arguments": {}}], finish_reason="stop")
            with it.tool("look", {}, call_id="c2") as tool:
                tool.result({"eggs": "zwölf"})
    (call_span,) = named(provider, "agent.llm")
    said = {key: json.loads(value) for key, value in facts(call_span, "gen_ai.input", "gen_ai.output").items()}
    asked = {"type": "tool_call", "id": "c1", "name": "look", "arguments": "{}"}
    assert said["gen_ai.input.messages"] == [
        {"role": "system", "parts": [{"type": "text", "content": "be short"}]},
        {"role": "user", "parts": [{"type": "text", "content": "count"}, {"type": "image", "uri": "x"}]},
        {"role": "assistant", "parts": [asked]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "12"}]},
    ]
    answered = {"type": "tool_call", "id": "c2", "name": "look", "arguments": {}}
    assert said["gen_ai.output.messages"] == [
        {"role": "assistant", "parts": [{"type": "text", "content": "12"}, answered], "finish_reason": "stop"}
    ]
    assert (call_span.attributes or {})["gen_ai.system_instructions"] == '[{"type": "text", "content": "be kind"}]'
    last = named(provider, "agent.tool")[-1]
    assert facts(last, "gen_ai.tool.call.r") == {"gen_ai.tool.call.result": '{"eggs": "zwölf"}'}


def test_the_prompt_has_one_hash_whether_it_is_recorded_or_not() -> None:
    hashes = []
    for record_content in (False, True):
        with GatedProvider() as provider:
            count_eggs(provider, record_content=record_content)
        hashes.append([facts(span, "prompt.", "fingerprint.") for span in named(provider, "agent.llm")])
    assert hashes[0] == hashes[1]
    assert hashes[0][0]["prompt.hash"] != hashes[0][1]["prompt.hash"]


def attempts(provider: GatedProvider) -> list[Any]:
    return [facts(span, "agent.attempt")["agent.attempt"] for span in named(provider, "agent.tool")]


def test_a_retry_of_the_same_input_keeps_its_work_id_and_counts_on(provider: GatedProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it, prompt in zip(run.iterations(), ["count", "count", "count again"], strict=False):
            with it.llm("small", prompt) as call:
                call.answer("ok", input_tokens=1, output_tokens=1)
            for tool, arguments in (("look", {"q": 1}), ("look", {"q": 2})):
                with it.tool(tool, arguments):
                    pass
        run.halt("done")
    first, second, third = (facts(span, "agent.work_id") for span in named(provider, "agent.iter"))
    assert first == second != third
    assert attempts(provider) == [1, 1, 2, 2, 1, 1]


def test_arguments_that_are_no_json_are_never_taken_for_equal(provider: GatedProvider) -> None:
    with spangate.run(max_iters=1, tracer_provider=provider) as run:
        for it in run.iterations():
            for _ in range(2):
                with it.tool("look", {"at": object()}) as tool:
                    tool.result(object())
    assert attempts(provider) == [1, 1]
    assert "agent.input_hash" not in facts(named(provider, "agent.tool")[0], "agent.")


class Message:
    """A client's object, as pydantic's are."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        return {key: value for key, value in self._fields.items() if not (exclude_none and value is None)}


def hashes_of(messages: Any, calls: Any) -> Any:
    with GatedProvider() as provider, spangate.run(max_iters=1, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.llm("small", messages, response_format={"type": "json"}) as call:
                call.answer("ok", tool_calls=calls, input_tokens=1, output_tokens=1)
    (span,) = named(provider, "agent.llm")
    return facts(span, "agent.", "prompt.", "gen_ai.request.response_format")


def test_a_clients_own_objects_are_what_they_say() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
    objects = [Message(role="user", content="count", name=None)], [Message(id="c1", function=call["function"])]
    told = hashes_of(*objects)
    assert told == hashes_of([{"role": "user", "content": "count"}], [call])
    assert told["gen_ai.request.response_format"] == '{"type": "json"}'
    assert "prompt.hash" in told


CIRCLE: list[Any] = []
CIRCLE += [CIRCLE, CIRCLE]
ODD: list[Any] = [
    object(),
    CIRCLE,
    Mock(),
    {("a", "b"): 1},
    b"bytes",
    float("nan"),
    "\ud800",
    [None, object()],
    {1: 2, "1": 3},
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("record_content", [False, True])
def test_what_cannot_be_written_costs_nobody_anything(odd: Any, record_content: bool) -> None:  # noqa: FBT001  drawn
    with (
        GatedProvider() as provider,
        spangate.run(max_iters=1, record_content=record_content, tracer_provider=provider) as run,
    ):
        for it in run.iterations():
            with it.llm("small", [odd], tools=[odd], top_p=odd) as call:
                call.answer("ok", tool_calls=[odd], input_tokens=1, output_tokens=1)
            with it.llm("small", [{"role": "user", "content": odd, "tool_calls": [odd]}]) as call:
                call.answer("ok", input_tokens=1, output_tokens=1)
            with it.tool("look", odd, schema=odd) as tool:
                tool.result(odd)
    assert [span.name for span in provider.released][-1] == "agent.run"


def test_what_an_iteration_works_on_may_be_said(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            it.work_on({"ticket": 7})
            with it.llm("small", f"prompt {it.number}") as call:
                call.answer("ok", input_tokens=1, output_tokens=1)
    first, second = (facts(span, "agent.work_id") for span in named(provider, "agent.iter"))
    assert first == second == {"agent.work_id": sha('{"ticket":7}')}


def look(q: str) -> str:
    return f"12 {q}"


async def look_async(q: str) -> str:
    await asyncio.sleep(0)
    return f"12 {q}"


def broken(q: str) -> str:
    raise LookupError(q)


def test_a_function_is_called_as_a_tool(provider: GatedProvider) -> None:
    async def agent() -> list[str]:
        async with spangate.run(max_iters=1, tracer_provider=provider) as run:
            async for it in run.iterations():
                answers = [it.call(look, {"q": "eggs"}, call_id="c1"), await it.call(look_async, {"q": "hens"})]
                with pytest.raises(LookupError, match="cocks"):
                    it.call(broken, {"q": "cocks"}, name="count")
                with it.llm("small", "so?") as call:
                    call.answer("so.", input_tokens=1, output_tokens=1)
            run.halt("done")
            return answers

    assert asyncio.run(agent()) == ["12 eggs", "12 hens"]
    told = [facts(span, "agent.tool", "agent.ok", "agent.error") for span in named(provider, "agent.tool")]
    assert told == [
        {"agent.tool": "look", "agent.ok": True},
        {"agent.tool": "look_async", "agent.ok": True},
        {"agent.tool": "count", "agent.ok": False, "agent.error_class": "LookupError"},
    ]
    assert [finding.code for finding in provider.verdicts[0].warnings] == ["completeness.recovered_error"]


def test_a_tool_that_returns_its_errors_may_say_so(provider: GatedProvider) -> None:
    with spangate.run(max_iters=1, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look") as tool:
                tool.result({"error": "no such shelf"})
                tool.fail("NoSuchShelf")
            with it.tool("look") as tool:
                tool.fail(TimeoutError("too slow"))
            with it.llm("small", "so?") as call:
                call.answer("so.", input_tokens=1, output_tokens=1)
    assert [facts(span, "agent.error", "error.type") for span in named(provider, "agent.tool")] == [
        {"agent.error_class": "NoSuchShelf", "error.type": "NoSuchShelf"},
        {"agent.error_class": "TimeoutError", "error.type": "TimeoutError"},
    ]


def test_tools_in_threads_that_know_nothing_of_the_run_are_below_their_iteration(provider: GatedProvider) -> None:
    meet = threading.Barrier(3)

    def taste(it: Any, dish: int) -> None:
        with it.tool("taste", {"dish": dish}):
            meet.wait(10)
            provider.get_tracer("app").start_span(f"bite {dish}").end()

    with spangate.run(max_iters=1, tracer_provider=provider) as run, ThreadPoolExecutor(3) as pool:
        for it in run.iterations():
            assert [*pool.map(taste, [it] * 3, range(3))] == [None] * 3
    provider.assert_released()
    tools, bites = named(provider, "agent.tool"), [span for span in provider.released if span.name.startswith("bite")]
    (turn,) = named(provider, "agent.iter")
    assert {span.parent.span_id for span in tools if span.parent} == {turn.context.span_id}
    assert {span.parent.span_id for span in bites if span.parent} == {span.context.span_id for span in tools}
    assert {span.context.trace_id for span in provider.released} == {turn.context.trace_id}


def test_tools_in_tasks_are_below_their_iteration(provider: GatedProvider) -> None:
    async def taste(it: Any, dish: int) -> None:
        async with it.tool("taste", {"dish": dish}):
            await asyncio.sleep(0)

    async def agent() -> None:
        async with spangate.run(max_iters=2, tracer_provider=provider) as run:
            async for it in run.iterations():
                await asyncio.gather(*(taste(it, dish) for dish in range(3)))

    asyncio.run(agent())
    provider.assert_released()
    assert [parent for name, parent in parent_names(provider) if name == "agent.tool"] == ["agent.iter"] * 6


def test_an_agent_in_a_tool_is_part_of_the_run_and_has_a_loop_of_its_own(provider: GatedProvider) -> None:
    with spangate.run("outer", max_iters=1, tracer_provider=provider) as outer:
        for it in outer.iterations():
            inner = spangate.run("inner", max_iters=2, run_id="mine", tracer_provider=provider)
            with it.tool("ask a colleague"), inner:
                assert inner.run_id == outer.run_id != "mine"
                for turn in inner.iterations():
                    with turn.tool("look"):
                        pass
                    if turn.number == 2:
                        inner.halt("done")
        outer.halt("done")
    provider.assert_released()
    assert [verdict.run_id for verdict in provider.verdicts] == [outer.run_id]
    assert [facts(span, "agent.run_id")["agent.run_id"] for span in named(provider, "agent.run")] == [outer.run_id] * 2
    assert ("agent.run", "agent.tool") in parent_names(provider)


def test_runs_in_threads_at_once_are_runs_of_their_own(provider: GatedProvider) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: count_eggs_once(provider), range(8))] == [None] * 8
    provider.assert_released()
    assert len({verdict.run_id for verdict in provider.verdicts}) == len(provider.verdicts) == 8


def count_eggs_once(provider: GatedProvider) -> None:
    with spangate.run(GOAL, max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass
            run.halt("done")


def test_what_was_current_is_current_again(provider: GatedProvider) -> None:
    before = context.get_current()
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        assert trace.get_current_span() is run.span
        assert baggage.get_baggage("spangate.run_id") == run.run_id
        for it in run.iterations():
            assert trace.get_current_span() is it.span
            with it.tool("look") as tool:
                assert trace.get_current_span() is tool.span
            assert trace.get_current_span() is it.span
        assert trace.get_current_span() is run.span
        run.halt("done")
    assert context.get_current() == before


def test_a_loop_that_is_no_for_loop(provider: GatedProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        left = ["flour", "eggs"]
        while left:
            with run.iteration() as it, it.tool("fetch", {"what": left.pop()}):
                pass
        run.halt("done")
    assert [facts(span, "agent.iteration") for span in named(provider, "agent.iter")] == [
        {"agent.iteration": 1},
        {"agent.iteration": 2},
    ]


def test_without_an_sdk_nothing_is_recorded_and_nothing_fails() -> None:
    with spangate.run(GOAL, max_iters=2, tracer_provider=trace.NoOpTracerProvider()) as run:
        for it in run.iterations():
            with it.llm("small", "hello") as call:
                call.answer("hi", input_tokens=1, output_tokens=1)
            assert it.call(look, {"q": "eggs"}) == "12 eggs"
            run.halt("done")
    assert run.halted == "done"


def test_the_global_provider_is_taken_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with GatedProvider() as provider:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        with spangate.run(max_iters=1) as run:
            for _ in run.iterations():
                run.halt("done")
    provider.assert_released()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_iters": 0}, "max_iters is 0"),
        ({"max_iters": -1}, "max_iters is -1: write a whole number"),
        ({"max_iters": 2.0}, "max_iters is 2.0"),
        ({"max_iters": True}, "max_iters is True"),
        ({"run_id": ""}, "run_id is ''"),
        ({"run_id": "a.b"}, "run_id is 'a.b': write 1 to 64 letters"),
    ],
)
def test_a_setting_that_is_none_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        spangate.run(**settings)


def test_a_key_that_a_client_takes_beside_its_parameters_is_not_recorded() -> None:
    secret, headers = "sk-1234", {"Authorization": "Bearer sk-1234"}
    with GatedProvider() as provider, spangate.run("tea", max_iters=1, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.llm("small", "hi", api_key=secret, extra_headers=headers, max_tokens=9) as call:
                call.answer("ho")
            run.halt("done")
    asked = next(span for span in provider.released if span.name == "agent.llm")
    assert asked.attributes is not None
    assert asked.attributes["gen_ai.request.max_tokens"] == 9
    assert asked.attributes["gen_ai.request.api_key"] == "<redacted>"
    assert not [span.name for span in provider.released if secret in span.to_json()]
