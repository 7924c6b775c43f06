"""What a user tests an agent with: it repeats to the last digit, and its assertions say what was wrong."""

from __future__ import annotations

import asyncio
import doctest
import time
from collections.abc import Callable

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.trace import Tracer

import spangate.testing
from spangate.gates import Budget, Completeness, default_gates
from spangate.testing import Clock, GatedProvider

AGENT = {"gen_ai.operation.name": "invoke_agent"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}


def agent(tracer: Tracer) -> None:
    with (
        tracer.start_as_current_span("invoke_agent cook", attributes=AGENT),
        tracer.start_as_current_span("chat small", attributes=CHAT) as call,
    ):
        call.set_attributes({"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3})


def leaky_agent(tracer: Tracer) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        tracer.start_span("chat small", attributes=CHAT)


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(spangate.testing) == (0, 11)


def story(provider: GatedProvider) -> list[str]:
    exported = [*provider.released, *provider.refused]
    return [span.to_json() for span in exported] + [repr(verdict) for verdict in provider.verdicts]


@pytest.mark.parametrize("run", [agent, leaky_agent])
def test_two_runs_of_the_same_agent_are_the_same_to_the_last_digit(run: Callable[[Tracer], None]) -> None:
    stories = []
    for _ in range(2):
        with GatedProvider() as provider:
            run(provider.get_tracer("kitchen"))
        stories.append(story(provider))
    assert len(stories[0]) > 1
    assert stories[0] == stories[1]


def times(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


def test_ids_count_up_and_the_clock_steps() -> None:
    with GatedProvider(clock=Clock(now_ns=1000, step_ns=10)) as provider:
        agent(provider.get_tracer("kitchen"))
    found = [(span.context.trace_id, span.context.span_id, *times(span)) for span in provider.released]
    assert found == [(1, 2, 1010, 1020), (1, 1, 1000, 1030)]


def test_time_passes_when_the_test_says_so() -> None:
    clock = Clock(now_ns=0)
    with (
        GatedProvider(clock=clock) as provider,
        provider.get_tracer("kitchen").start_as_current_span("invoke_agent cook", attributes=AGENT),
    ):
        clock.advance(2.5)
    assert [times(span) for span in provider.released] == [(0, 2_501_000_000)]


def test_times_that_the_agent_gives_itself_are_kept() -> None:
    with GatedProvider() as provider:
        span = provider.get_tracer("kitchen").start_span("invoke_agent cook", None, attributes=AGENT, start_time=7)
        span.end(end_time=9)
    assert [times(span) for span in provider.released] == [(7, 9)]


def test_real_time_can_be_had() -> None:
    before = time.time_ns()
    with GatedProvider(clock=time.time_ns) as provider:
        agent(provider.get_tracer("kitchen"))
    start, end = times(provider.released[-1])
    assert before <= start <= end <= time.time_ns()


def test_a_sampler_in_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with GatedProvider() as provider:
        agent(provider.get_tracer("kitchen"))
    provider.assert_released()


def test_spans_stay_what_the_sdk_makes_them() -> None:
    with GatedProvider() as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT) as span:
            assert isinstance(span, Span)


def test_a_tracer_can_be_asked_for_as_often_as_one_likes() -> None:
    with GatedProvider() as provider:
        for _ in range(2000):
            tracer = provider.get_tracer("kitchen")
        agent(tracer)
    provider.assert_released()


def test_a_coroutine_is_traced_to_its_end() -> None:
    with GatedProvider() as provider:
        tracer = provider.get_tracer("kitchen")

        @tracer.start_as_current_span("invoke_agent cook", attributes=AGENT)
        async def cook() -> None:
            await asyncio.sleep(0)
            tracer.start_span("chat small", attributes=CHAT).end()

        asyncio.run(cook())
    assert [span.name for span in provider.released] == ["chat small", "invoke_agent cook"]
    assert provider.released[0].parent is not None


def test_a_run_is_judged_inside_the_block_when_the_test_settles() -> None:
    with GatedProvider() as provider:
        agent(provider.get_tracer("kitchen"))
        provider.settle()
        assert [verdict.trigger for verdict in provider.verdicts] == ["force_flush"]
        provider.assert_released()


def test_a_shared_provider_forgets() -> None:
    with GatedProvider() as provider:
        agent(provider.get_tracer("kitchen"))
        provider.clear()
        assert not provider.verdicts
        assert not provider.released
        agent(provider.get_tracer("kitchen"))
        provider.assert_released()
        assert len(provider.verdicts) == 1


def test_a_refused_run_leaves_its_verdict_alone() -> None:
    with GatedProvider() as provider:
        leaky_agent(provider.get_tracer("kitchen"))
    provider.assert_refused("completeness.open_span")
    assert not provider.released
    assert [span.name for span in provider.refused] == ["refused invoke_agent cook"]


def test_the_roots_of_a_dry_run_are_no_verdict_spans() -> None:
    with GatedProvider(dry_run=True) as provider:
        leaky_agent(provider.get_tracer("kitchen"))
    assert [span.name for span in provider.released] == ["invoke_agent cook"]
    assert [span.name for span in provider.refused] == ["refused invoke_agent cook"]


def test_gates_are_those_that_the_test_gives() -> None:
    with GatedProvider([Budget(max_input_tokens=10)]) as provider:
        agent(provider.get_tracer("kitchen"))
    provider.assert_refused("budget.ceiling")
    assert list(provider.verdicts[0].gates) == ["budget", "encoding"]


def test_what_a_failed_run_should_have_been_is_told_with_its_verdict() -> None:
    with GatedProvider() as provider:
        leaky_agent(provider.get_tracer("kitchen"))
    with pytest.raises(AssertionError, match=r"^refused\n\nFAIL  invoke_agent cook\n(.|\n)*completeness\.open_span: "):
        provider.assert_released()


def test_a_pass_that_should_have_been_a_refusal_is_told_with_its_verdict() -> None:
    with GatedProvider() as provider:
        agent(provider.get_tracer("kitchen"))
    with pytest.raises(AssertionError, match=r"^no run failed with anything\n\nPASS  invoke_agent cook\n"):
        provider.assert_refused()


def test_a_refusal_for_another_reason_is_told_with_its_verdict() -> None:
    with GatedProvider([*default_gates(), Completeness()]) as provider:
        leaky_agent(provider.get_tracer("kitchen"))
    with pytest.raises(AssertionError, match=r"^no run failed with budget\.ceiling\n\nFAIL  invoke_agent cook\n"):
        provider.assert_refused("budget.ceiling", "completeness.open_span")


@pytest.mark.parametrize("check", [GatedProvider.assert_released, GatedProvider.assert_refused])
def test_without_a_run_nothing_is_right(check: Callable[[GatedProvider], None]) -> None:
    with GatedProvider() as provider:
        provider.get_tracer("web").start_span("GET /").end()
    with pytest.raises(AssertionError, match="no run was judged: none of 1 ended span is known as an agent"):
        check(provider)


def test_a_run_that_cannot_be_judged_yet_is_no_pass() -> None:
    with GatedProvider(grace_s=3600) as provider:
        leaky_agent(provider.get_tracer("kitchen"))
        with pytest.raises(AssertionError, match="set grace_s to less"):
            provider.assert_released()
