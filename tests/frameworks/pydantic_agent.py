"""An agent built with pydantic-ai and traced by pydantic-ai's own instrumentation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Literal, TypeAlias

from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from tests.frameworks.clients import async_client_of
from tests.frameworks.gated import Gated
from tests.frameworks.scenes import QUESTION, Busy, LookUp, Run, Told
from tests.model_server import USAGE, Answer, ModelServer

Style: TypeAlias = Literal["sync", "async", "stream"]


def weather_agent(provider: TracerProvider, look_up: LookUp) -> Agent[None, str]:
    """Build the agent."""

    def answer(city: str) -> str:
        try:
            return look_up(city)
        except Busy as error:
            raise ModelRetry(str(error)) from error

    return traced_agent(provider, answer)


def traced_agent(provider: TracerProvider, tool: Callable[[str], str | Awaitable[str]]) -> Agent[None, str]:
    """Build an agent with one tool, which it knows as ``look_up``."""
    tracing = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    return Agent(name="weather", tools=[Tool(tool, name="look_up")], capabilities=[tracing])


async def ask(agent: Agent[None, str], model: Model, *, stream: bool) -> Told:
    """Run the agent once."""
    if stream:
        async with agent.run_stream(QUESTION, model=model) as answer:
            return Told(await answer.get_output(), (answer.usage.input_tokens, answer.usage.output_tokens))
    done = await agent.run(QUESTION, model=model)
    return Told(done.output, (done.usage.input_tokens, done.usage.output_tokens))


@contextmanager
def scripted(gated: Gated, script: Mapping[str, Sequence[Answer]], *, style: Style) -> Iterator[Run]:
    """Run on models that are functions: no network anywhere."""

    def run(name: str, look_up: LookUp) -> Told:
        agent, model = weather_agent(gated.provider, look_up), scripted_model(script[name])
        if style != "sync":
            return asyncio.run(ask(agent, model, stream=style == "stream"))
        with _own_event_loop():
            done = agent.run_sync(QUESTION, model=model)
        return Told(done.output, (done.usage.input_tokens, done.usage.output_tokens))

    yield run


@contextmanager
def served(gated: Gated, script: Mapping[str, Sequence[Answer]], *, stream: bool) -> Iterator[Run]:
    """Run on OpenAI models, which a real server answers for."""

    async def run(url: str, name: str, look_up: LookUp) -> Told:
        async with served_model(url, name) as model:
            return await ask(weather_agent(gated.provider, look_up), model, stream=stream)

    with ModelServer(script) as server:
        yield lambda name, look_up: asyncio.run(run(server.url, name, look_up))


@asynccontextmanager
async def served_model(url: str, name: str) -> AsyncIterator[Model]:
    """Make an OpenAI model that asks the server at ``url``."""
    async with async_client_of(url) as client:
        yield OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


def scripted_model(answers: Sequence[Answer]) -> FunctionModel:
    """Make a model that gives ``answers`` in turn, streaming or not."""

    def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        turn = _turn(messages)
        answer = answers[turn]
        if answer.status != HTTPStatus.OK:
            raise ModelHTTPError(answer.status, "scripted", "scripted")
        parts: list[ModelResponsePart] = [
            ToolCallPart(wanted.name, dict(wanted.arguments), f"call-{turn}-{place}")
            for place, wanted in enumerate(answer.calls)
        ]
        usage = RequestUsage(input_tokens=USAGE.input, output_tokens=USAGE.output)
        return ModelResponse(parts or [TextPart(answer.text)], usage=usage)

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        turn = _turn(messages)
        for word in answers[turn].text.split():
            yield word + " "
        for place, wanted in enumerate(answers[turn].calls):
            arguments = json.dumps(wanted.arguments)
            yield {place: DeltaToolCall(wanted.name, arguments, tool_call_id=f"call-{turn}-{place}")}

    return FunctionModel(respond, stream_function=stream)


def _turn(messages: Sequence[ModelMessage]) -> int:
    return sum(isinstance(message, ModelResponse) for message in messages)


@contextmanager
def _own_event_loop() -> Iterator[None]:
    """Give ``run_sync`` a loop that is closed afterwards: the one that it makes for itself never is."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()
