"""Streamed answers, and what becomes of a run when one is left, broken, or does not say what it used."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import pytest
from openai import APIConnectionError, AsyncOpenAI, OpenAI
from pydantic_ai.exceptions import ModelAPIError

from tests.frameworks.clients import async_client_of, client_of
from tests.frameworks.gated import Account, Gated, passed
from tests.frameworks.openai_agent import MODEL, TRACINGS, Tracing, handler
from tests.frameworks.pydantic_agent import served_model, weather_agent
from tests.frameworks.scenes import QUESTION, rain
from tests.model_server import USAGE, ModelServer, says

every_tracing = pytest.mark.parametrize("tracing", TRACINGS.values(), ids=TRACINGS.keys())

ANSWER: Final = says("It rains in both.")
BROKEN_ANSWER: Final = says("It rains in both.", cut_after=3)
ABANDONED: Final = Account("fail", ("completeness.open_span",), ("budget.usage_missing",))


def stream(client: OpenAI | AsyncOpenAI, **settings: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=[], stream=True, **settings)


@every_tracing
def test_a_stream_read_to_its_end_is_released(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, ANSWER) as client:
        list(stream(client, stream_options={"include_usage": True}))
    assert gated.released() == passed(USAGE[:2])


@every_tracing
def test_a_stream_that_was_not_asked_for_its_usage_is_released_with_no_sum(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, ANSWER) as client:
        list(stream(client))
    assert gated.released() == passed(None, "budget.usage_missing")


@every_tracing
def test_a_stream_that_was_closed_early_is_released_with_no_sum(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, ANSWER) as client, stream(client) as chunks:
        next(chunks)
    assert gated.released() == passed(None, "budget.usage_missing")


@every_tracing
def test_a_stream_that_broke_refuses_a_run_whose_root_keeps_silent(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, BROKEN_ANSWER) as client, suppress(APIConnectionError):
        list(stream(client))
    assert gated.refused() == Account("fail", ("completeness.unrecovered_error",), ("budget.lower_bound",))


@every_tracing
def test_an_abandoned_stream_refuses_the_run_and_nothing_leaves_later(tracing: Tracing, hasty: Gated) -> None:
    with ModelServer({MODEL: [ANSWER]}) as server, client_of(server.url) as client:
        with tracing.instrumented(hasty.provider), hasty.tracer.start_as_current_span("handler"):
            kept = stream(client)
            next(kept)
        assert hasty.refused() == ABANDONED
        kept.close()
    assert hasty.refused() == ABANDONED
    assert len(hasty.ended) == 2


@every_tracing
def test_an_abandoned_async_stream_refuses_the_run_and_nothing_leaves_later(tracing: Tracing, hasty: Gated) -> None:
    async def program(url: str) -> None:
        async with async_client_of(url) as client:
            with hasty.tracer.start_as_current_span("handler"):
                kept = await stream(client)
                await anext(kept)
            assert hasty.refused() == ABANDONED
            await kept.close()

    with ModelServer({MODEL: [ANSWER]}) as server, tracing.instrumented(hasty.provider):
        asyncio.run(program(server.url))
    assert hasty.refused() == ABANDONED
    assert len(hasty.ended) == 2


def test_an_abandoned_stream_of_pydantic_ai_refuses_the_run_and_nothing_leaves_later(hasty: Gated) -> None:
    agent = weather_agent(hasty.provider, rain)

    async def program(url: str) -> None:
        async with served_model(url, MODEL) as model, AsyncExitStack() as kept:
            with hasty.tracer.start_as_current_span("handler"):
                answer = await kept.enter_async_context(agent.run_stream(QUESTION, model=model))
                await anext(answer.stream_text())
            assert hasty.refused() == ABANDONED

    with ModelServer({MODEL: [ANSWER]}) as server:
        asyncio.run(program(server.url))
    assert hasty.refused() == ABANDONED
    assert len(hasty.ended) == 3


def test_a_run_of_pydantic_ai_is_held_while_its_stream_is_read(gated: Gated) -> None:
    agent = weather_agent(gated.provider, rain)

    async def program(url: str) -> None:
        async with served_model(url, MODEL) as model, agent.run_stream(QUESTION, model=model) as answer:
            assert gated.exported() == ()
            await answer.get_output()

    with ModelServer({MODEL: [ANSWER]}) as server:
        asyncio.run(program(server.url))
    assert gated.released() == passed(USAGE[:2])


def test_a_stream_of_pydantic_ai_that_broke_refuses_a_run_whose_root_keeps_silent(gated: Gated) -> None:
    agent = weather_agent(gated.provider, rain)

    async def program(url: str) -> None:
        async with served_model(url, MODEL) as model:
            with gated.tracer.start_as_current_span("handler"), suppress(ModelAPIError):
                async with agent.run_stream(QUESTION, model=model) as answer:
                    await answer.get_output()

    with ModelServer({MODEL: [BROKEN_ANSWER]}) as server:
        asyncio.run(program(server.url))
    assert gated.refused() == Account("fail", ("completeness.unrecovered_error",), ("budget.usage_missing",))
