"""A loop of your own before the gates: a sound one passes the strictest, each fault is refused with its code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

import spangate
from spangate import GateSpanProcessor, SpangateError, Verdict, default_gates, strict_gates
from spangate.gates import Halt
from spangate.testing import GatedProvider
from tests.live.gated import LOOKS

QUESTION: list[dict[str, Any]] = [{"role": "user", "content": "how many eggs?"}]
TOOLS = [{"name": "look", "parameters": {"type": "object"}}]
ASKED: list[dict[str, Any]] = [{"id": "c1", "name": "look", "arguments": {"where": "nest"}}]
ANSWERED: list[dict[str, Any]] = [
    *QUESTION,
    {"role": "assistant", "content": None, "tool_calls": ASKED},
    {"role": "tool", "tool_call_id": "c1", "content": "12"},
]


def sound(provider: TracerProvider, **settings: Any) -> None:
    with spangate.run("count the eggs", max_iters=4, name="counter", tracer_provider=provider, **settings) as run:
        for it in run.iterations():
            asks = it.number == 1
            messages, calls = (QUESTION, ASKED) if asks else (ANSWERED, [])
            with it.llm("small", messages, tools=TOOLS, temperature=0.0, provider="acme") as call:
                call.answer(None if asks else "12", tool_calls=calls, input_tokens=20, output_tokens=5)
            if not asks:
                run.halt("done")
                break
            with it.tool("look", {"where": "nest"}, schema=TOOLS[0], call_id="c1", caused_by=[call]) as tool:
                tool.result("12")


@pytest.mark.parametrize("record_content", [False, True])
@pytest.mark.parametrize("gates", [default_gates, strict_gates])
def test_a_sound_loop_passes(gates: Callable[[], Any], record_content: bool) -> None:  # noqa: FBT001  drawn
    with GatedProvider(gates()) as provider:
        sound(provider, record_content=record_content)
    provider.assert_released()
    (verdict,) = provider.verdicts
    assert verdict.warnings == ()
    assert set(verdict.gates.values()) == {"pass"}
    assert (verdict.totals.input_tokens, verdict.totals.output_tokens) == (40, 10)
    assert verdict.totals.tool_payload_bytes == 2


def test_and_one_on_a_provider_as_users_have_it() -> None:
    memory, verdicts = InMemorySpanExporter(), list[Verdict]()
    provider = TracerProvider()
    provider.add_span_processor(GateSpanProcessor(memory, gates=strict_gates(), on_verdict=verdicts.append))
    sound(provider)
    provider.shutdown()
    assert [verdict.verdict for verdict in verdicts] == ["pass"]
    assert [span.name for span in memory.get_finished_spans()][-1] == "agent.run"


def test_content_shows_which_tools_the_model_called() -> None:
    with GatedProvider() as provider:
        sound(provider, record_content=True)
    assert provider.verdicts[0].gaps == ()


def test_a_call_whose_tool_leaves_no_span_is_found_by_its_content() -> None:
    with GatedProvider() as provider, spangate.run(max_iters=2, record_content=True, tracer_provider=provider) as run:
        for it in run.iterations():
            messages, calls = (QUESTION, ASKED) if it.number == 1 else (ANSWERED, [])
            with it.llm("small", messages) as call:
                call.answer("12", tool_calls=calls, input_tokens=1, output_tokens=1)
            with it.tool("unrelated", call_id="c9"):
                pass
        run.halt("done")
    provider.assert_refused("completeness.cited_tool_missing")


def leaves_no_reason(provider: TracerProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                break


def halts_for_no_reason(provider: TracerProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for _ in run.iterations():
            run.halt("because")


def changes_a_schema(provider: TracerProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look", schema={"turn": it.number}):
                pass


def leaves_a_tool_open(provider: TracerProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it in run.iterations():
            it.tool("look").__enter__()


def hides_an_iteration(provider: TracerProvider) -> None:
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it in run.iterations():
            it.span.set_attribute("agent.iteration", it.number * 2)


def writes_too_many_by_hand(provider: TracerProvider) -> None:
    tracer: Tracer = provider.get_tracer("by hand")
    with tracer.start_as_current_span("agent.run", attributes={"agent.run_id": "r", "agent.max_iters": 2}):
        for number in (1, 2, 3):
            with tracer.start_as_current_span("agent.iter", attributes={"agent.iteration": number}):
                pass
        tracer.start_span("agent.halt", attributes={"agent.halt_reason": "done", "agent.last_iteration": 3}).end()


def counts_on_its_root(provider: TracerProvider) -> None:
    with spangate.run(max_iters=1, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.llm("small", "hello") as call:
                call.answer("hi", input_tokens=3, output_tokens=1)
        run.span.set_attribute("gen_ai.usage.input_tokens", 3)
        run.halt("done")


FAULTS = [
    (leaves_no_reason, "halt.missing"),
    (halts_for_no_reason, "halt.unknown_reason"),
    (changes_a_schema, "halt.schema_drift"),
    (leaves_a_tool_open, "halt.open_iteration"),
    (hides_an_iteration, "halt.iteration_gap"),
    (writes_too_many_by_hand, "halt.over_budget"),
]


@pytest.mark.parametrize(("agent", "code"), FAULTS, ids=[code for _, code in FAULTS])
def test_a_fault_is_refused_with_its_code(agent: Callable[[TracerProvider], None], code: str) -> None:
    with GatedProvider(grace_s=0.0) as provider, suppress(SpangateError):
        agent(provider)
    provider.assert_refused(code)
    assert provider.released == ()


def test_token_counts_on_the_root_of_a_run_are_refused_in_strict() -> None:
    for gates, passes in ((default_gates(), True), (strict_gates(), False)):
        with GatedProvider(gates) as provider:
            counts_on_its_root(provider)
        codes = [finding.code for finding in provider.verdicts[0].failures]
        assert ("budget.root_usage" in codes) is not passes


def test_a_framework_in_a_run_of_your_own_says_why_it_ended() -> None:
    def framework(provider: TracerProvider) -> None:
        tracer = provider.get_tracer("framework")
        with tracer.start_as_current_span("invoke_agent x", attributes=LOOKS["agent"]):
            for _ in range(2):
                tracer.start_span("cycle", attributes=LOOKS["iteration"]).end()

    with GatedProvider([Halt(require_halt=True)]) as provider:
        framework(provider)
    provider.assert_refused("halt.missing")
    with GatedProvider([Halt(max_iters=1)]) as provider:
        framework(provider)
    provider.assert_refused("halt.over_budget")
    with GatedProvider() as provider, spangate.run("wrap", tracer_provider=provider) as run:
        framework(provider)
        run.halt("done")
    provider.assert_released()
    assert provider.verdicts[0].gates["halt"] == "pass"


def test_frameworks_are_not_evaluable() -> None:
    with GatedProvider() as provider:
        tracer = provider.get_tracer("framework")
        with tracer.start_as_current_span("invoke_agent x", attributes=LOOKS["agent"]):
            tracer.start_span("cycle", attributes=LOOKS["iteration"]).end()
    assert provider.verdicts[0].gates["halt"] == "not_evaluable"
    assert "framework" in next(gap.detail for gap in provider.verdicts[0].gaps if gap.code == "halt.not_evaluable")


def test_a_run_in_many_threads_is_one_run() -> None:
    with GatedProvider() as provider, spangate.run(max_iters=20, tracer_provider=provider) as run:
        for it in run.iterations():
            threads = [threading.Thread(target=ask, args=(it, number)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        run.halt("done")
    provider.assert_released()
    (verdict,) = provider.verdicts
    assert verdict.totals.spans_started == 1 + 20 * (1 + 8 * 2) + 1


def ask(it: Any, number: int) -> None:
    with it.llm("small", f"question {number}") as call:
        call.answer("ok", input_tokens=1, output_tokens=1)
    with it.tool("look", {"number": number}, schema={}) as tool:
        tool.result("ok")
