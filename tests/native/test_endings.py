"""How a loop may end: every way out closes its spans, and is recorded for what it is."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import context
from opentelemetry.trace import StatusCode

import spangate
from spangate import SpangateError
from spangate._errors import LoopError
from spangate.testing import GatedProvider


class ReadTimeout(Exception):  # noqa: N818  as httpx names it
    """What a client raises whose time is up."""


ENDINGS = [
    (ValueError("no egg"), "tool_error"),
    (TimeoutError("slow"), "timeout"),
    (asyncio.TimeoutError(), "timeout"),
    (concurrent.futures.TimeoutError(), "timeout"),
    (ReadTimeout("slow"), "timeout"),
    (asyncio.CancelledError(), "cancelled"),
    (concurrent.futures.CancelledError(), "cancelled"),
    (KeyboardInterrupt(), "cancelled"),
    (SystemExit(3), "cancelled"),
    (GeneratorExit(), "cancelled"),
]


def raising(provider: GatedProvider, error: BaseException, where: str) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                if where == "tool":
                    raise error
            with it.llm("small", "hello") as call:
                call.answer("hi", input_tokens=1, output_tokens=1)
                if where == "model":
                    raise error
            if where == "iteration":
                raise error
        if where == "run":
            raise error


def halt_of(provider: GatedProvider) -> dict[str, Any]:
    (halt,) = [span for span in provider.released if span.name == "agent.halt"]
    return dict(halt.attributes or {})


@pytest.mark.parametrize("where", ["tool", "model", "iteration", "run"])
@pytest.mark.parametrize(("error", "reason"), ENDINGS, ids=[type(error).__qualname__ for error, _ in ENDINGS])
def test_an_exception_halts_the_run_and_goes_on(error: BaseException, reason: str, where: str) -> None:
    before = context.get_current()
    with GatedProvider() as provider:
        with pytest.raises(type(error)) as caught:
            raising(provider, error, where)
        assert caught.value is error
        assert context.get_current() == before
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == reason
    root = provider.released[-1]
    assert root.status.status_code is StatusCode.ERROR
    assert (root.attributes or {})["error.type"] == type(error).__qualname__
    assert [event.name for event in root.events] == ["exception"]


def test_an_error_of_a_loop_inside_is_a_tools_error_to_the_one_around_it() -> None:
    def inner(provider: GatedProvider) -> None:
        with spangate.run(max_iters=1, tracer_provider=provider) as run:
            for _ in range(2):
                with run.iteration():
                    pass

    def outer(provider: GatedProvider) -> None:
        with spangate.run(max_iters=1, tracer_provider=provider) as run:
            for it in run.iterations():
                with it.tool("ask a colleague"):
                    inner(provider)

    with GatedProvider() as provider, pytest.raises(SpangateError, match="max_iters=1 are used up"):
        outer(provider)
    halts = [span.attributes or {} for span in provider.released if span.name == "agent.halt"]
    assert [halt["agent.halt_reason"] for halt in halts] == ["budget_exhausted", "tool_error"]


def test_an_error_leaves_a_run_with_work_open_as_it_is() -> None:
    error = LoopError("of another loop", "budget_exhausted")

    def agent(provider: GatedProvider) -> None:
        with spangate.run(max_iters=1, tracer_provider=provider) as run:
            next(run.iterations()).tool("look").__enter__()
            raise error

    with GatedProvider(grace_s=0.0) as provider:
        with pytest.raises(LoopError) as caught:
            agent(provider)
        assert caught.value is error
    provider.assert_refused("halt.open_iteration", "completeness.open_span")


def test_a_tool_says_what_was_raised_in_it() -> None:
    with GatedProvider() as provider, pytest.raises(ValueError, match="no egg"):
        raising(provider, ValueError("no egg"), "tool")
    (tool,) = [span for span in provider.released if span.name == "agent.tool"]
    told = tool.attributes or {}
    assert (told["agent.ok"], told["agent.error_class"], told["error.type"]) == (False, "ValueError", "ValueError")
    assert tool.status.status_code is StatusCode.ERROR


def test_an_exception_after_the_halt_leaves_its_reason() -> None:
    def agent(provider: GatedProvider) -> None:
        with spangate.run(max_iters=2, tracer_provider=provider) as run:
            for _ in run.iterations():
                run.halt("done")
            raise ValueError("while it cleaned up")

    with GatedProvider() as provider, pytest.raises(ValueError, match="cleaned up"):
        agent(provider)
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "done"
    assert provider.released[-1].status.status_code is StatusCode.ERROR


def test_an_error_that_is_caught_is_no_end() -> None:
    with GatedProvider() as provider, spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with pytest.raises(LookupError), it.tool("look"):
                raise LookupError("no egg")
            with it.llm("small", "hello") as call:
                call.answer("hi", input_tokens=1, output_tokens=1)
        run.halt("done")
    provider.assert_released()
    assert provider.released[-1].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("reason", ["tool_error", "timeout", "cancelled", "schema_drift", "span_open"])
def test_a_halt_for_a_failure_is_told_by_the_root(reason: str) -> None:
    with GatedProvider() as provider, spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look") as tool:
                tool.fail("LookupError")
            run.halt(reason)
    provider.assert_released()
    assert provider.released[-1].status.status_code is StatusCode.ERROR


def runs_out(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass


def runs_out_and_is_done(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass
        run.halt("done")


def breaks(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass
            break


def breaks_and_is_done(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                break
        run.halt("done")


def returns(provider: GatedProvider) -> int:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                return it.number
    return 0


def returns_when_done(provider: GatedProvider) -> int:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass
            run.halt("done")
            return it.number
    return 0


def goes_on_after_the_halt(provider: GatedProvider) -> None:
    with spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                pass
            run.halt("done")


def never_iterates(provider: GatedProvider) -> None:
    with spangate.run(tracer_provider=provider):
        pass


WAYS_OUT: list[tuple[Callable[[GatedProvider], Any], str | None, str]] = [
    (runs_out, "budget_exhausted", "pass"),
    (runs_out_and_is_done, "done", "pass"),
    (breaks, None, "fail"),
    (breaks_and_is_done, "done", "pass"),
    (returns, None, "fail"),
    (returns_when_done, "done", "pass"),
    (goes_on_after_the_halt, "done", "pass"),
    (never_iterates, None, "not_evaluable"),
]


@pytest.mark.parametrize(("agent", "reason", "result"), WAYS_OUT, ids=[agent.__name__ for agent, _, _ in WAYS_OUT])
def test_a_way_out_of_the_loop(agent: Callable[[GatedProvider], Any], reason: str | None, result: str) -> None:
    before = context.get_current()
    with GatedProvider() as provider:
        agent(provider)
        assert context.get_current() == before
    (verdict,) = provider.verdicts
    assert verdict.gates["halt"] == result
    assert [finding.code for finding in verdict.failures] == (["halt.missing"] if result == "fail" else [])
    if reason is not None:
        assert halt_of(provider)["agent.halt_reason"] == reason


def steps(provider: GatedProvider) -> Iterator[int]:
    """An agent that is a generator: whoever asks may leave it at any time."""
    with spangate.run(max_iters=3, tracer_provider=provider) as run:
        for it in run.iterations():
            with it.tool("look"):
                yield it.number
        run.halt("done")


def test_a_generator_that_is_used_up() -> None:
    with GatedProvider() as provider:
        assert [*steps(provider)] == [1, 2, 3]
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "done"


def test_a_generator_that_is_left_early_is_cancelled() -> None:
    with GatedProvider() as provider:
        for number in steps(provider):
            if number == 2:
                break
        gc.collect()
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "cancelled"
    assert halt_of(provider)["agent.last_iteration"] == 2


def test_an_async_generator_that_another_task_closes_leaves_that_tasks_context_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(provider: GatedProvider) -> Any:
        async with spangate.run(max_iters=3, tracer_provider=provider) as run:
            async for it in run.iterations():
                async with it.tool("look"):
                    yield it.number

    async def main(provider: GatedProvider) -> None:
        generator = agent(provider)
        assert await anext(generator) == 1

        async def close() -> None:
            before = context.get_current()
            await generator.aclose()
            assert context.get_current() == before

        await asyncio.create_task(close())

    with GatedProvider() as provider:
        asyncio.run(main(provider))
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "cancelled"
    assert "detach" not in caplog.text


def test_a_task_that_is_cancelled() -> None:
    async def agent(provider: GatedProvider, begun: asyncio.Event) -> None:
        async with spangate.run(max_iters=3, tracer_provider=provider) as run:
            async for it in run.iterations():
                async with it.llm("small", "hello"):
                    begun.set()
                    await asyncio.sleep(3600)

    async def main(provider: GatedProvider) -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(agent(provider, begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with GatedProvider() as provider:
        asyncio.run(main(provider))
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "cancelled"


def test_a_wait_whose_time_is_up_inside_the_run() -> None:
    async def agent(provider: GatedProvider) -> None:
        async with spangate.run(max_iters=3, tracer_provider=provider) as run:
            async for it in run.iterations():
                async with it.tool("fetch"):
                    await asyncio.wait_for(asyncio.sleep(3600), 0.001)

    with GatedProvider() as provider, pytest.raises(asyncio.TimeoutError):
        asyncio.run(agent(provider))
    provider.assert_released()
    assert halt_of(provider)["agent.halt_reason"] == "timeout"


def test_a_task_may_halt_the_run_of_another(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(provider: GatedProvider) -> None:
        async with spangate.run(max_iters=3, tracer_provider=provider) as run:

            async def watch() -> None:
                run.halt("done")

            async for it in run.iterations():
                async with it.tool("look"):
                    pass
                await asyncio.create_task(watch())

    before = context.get_current()
    with GatedProvider() as provider:
        asyncio.run(agent(provider))
    assert context.get_current() == before
    provider.assert_released()
    assert "detach" not in caplog.text
