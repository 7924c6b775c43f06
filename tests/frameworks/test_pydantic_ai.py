"""What only pydantic-ai does: many runs in one event loop, agents inside tools, calls of tools that do not exist."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from pydantic_ai import UsageLimits
from pydantic_ai.exceptions import UsageLimitExceeded

from tests.frameworks.gated import Gated, passed
from tests.frameworks.pydantic_agent import scripted_model, traced_agent, weather_agent
from tests.frameworks.scenes import ONE_CITY, QUESTION, TWO_CITIES, rain
from tests.model_server import USAGE, call, calls


def used(calls_made: int) -> tuple[int, int]:
    return calls_made * USAGE.input, calls_made * USAGE.output


def test_many_runs_in_one_event_loop_are_kept_apart(gated: Gated) -> None:
    async def program() -> None:
        agent = weather_agent(gated.provider, rain)
        await asyncio.gather(*(agent.run(QUESTION, model=scripted_model(TWO_CITIES)) for _ in range(3)))

    asyncio.run(program())
    assert gated.released_runs() == [passed(used(2))] * 3


def test_runs_below_one_span_of_the_program_are_one_run(gated: Gated) -> None:
    async def program() -> None:
        agent = weather_agent(gated.provider, rain)
        with gated.tracer.start_as_current_span("handler"):
            await asyncio.gather(*(agent.run(QUESTION, model=scripted_model(TWO_CITIES)) for _ in range(3)))

    asyncio.run(program())
    assert gated.released() == passed(used(6))


def test_an_agent_inside_a_tool_is_part_of_the_run_and_counted_once(gated: Gated) -> None:
    async def look_up(city: str) -> str:
        inner = weather_agent(gated.provider, rain)
        return (await inner.run(f"Does it rain in {city}?", model=scripted_model(ONE_CITY))).output

    outer = traced_agent(gated.provider, look_up)
    asyncio.run(outer.run(QUESTION, model=scripted_model(TWO_CITIES)))
    assert gated.released() == passed(used(2 + 2 * 2))


def test_a_cancelled_run_travels_with_warnings(gated: Gated) -> None:
    async def program() -> None:
        is_in_tool = asyncio.Event()

        async def look_up(city: str) -> str:
            is_in_tool.set()
            await asyncio.Event().wait()
            return city

        task = asyncio.create_task(traced_agent(gated.provider, look_up).run(QUESTION, model=scripted_model(ONE_CITY)))
        await is_in_tool.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(program())
    assert gated.released() == passed(used(1), "completeness.cancelled", "completeness.outlived_root")


def test_a_run_that_reached_its_limit_says_so_and_is_released(gated: Gated) -> None:
    agent = weather_agent(gated.provider, rain)
    with pytest.raises(UsageLimitExceeded):
        asyncio.run(agent.run(QUESTION, model=scripted_model(TWO_CITIES), usage_limits=UsageLimits(request_limit=1)))
    assert gated.released() == passed(used(1))


def test_a_call_of_a_tool_that_does_not_exist_is_not_missed(gated: Gated) -> None:
    answers = [calls(call("look_down", city="Paris")), *ONE_CITY]
    asyncio.run(weather_agent(gated.provider, rain).run(QUESTION, model=scripted_model(answers)))
    assert gated.released() == passed(used(3))
