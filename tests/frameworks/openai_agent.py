"""An agent written by hand over the openai client, which an instrumentation of that client traces.

The program opens a span for the agent and one for each tool itself, in the words of the same conventions.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple
from unittest import mock

from openai import AsyncOpenAI, OpenAI
from openai.resources.chat import AsyncCompletions, Completions
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openinference.instrumentation import OITracer, TraceConfig
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInferenceInstrumentor
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, Tracer

from tests.frameworks.clients import async_client_of, client_of
from tests.frameworks.gated import Gated, Tokens
from tests.frameworks.scenes import QUESTION, Busy, LookUp, Run, Told
from tests.model_server import Answer, ModelServer, says

MODEL: Final = "model-a"
SLOW_MODEL: Final = "slow-model"
"""Takes a minute to answer."""
LOOK_UP: Final = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Asked(NamedTuple):
    """A tool call as the model wants it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Tracing:
    """An instrumentation of the client, and the spans of a program that follows its conventions."""

    instrumented: Callable[[TracerProvider], AbstractContextManager[None]]
    agent_span: Callable[[Tracer], AbstractContextManager[Span]]
    tool_span: Callable[[Tracer, Asked], AbstractContextManager[Span]]


@contextmanager
def agent(
    gated: Gated,
    script: Mapping[str, Sequence[Answer]],
    *,
    tracing: Tracing,
    in_async: bool = False,
    stream: bool = False,
) -> Iterator[Run]:
    """Start a server for the script, and have the client traced."""

    def run(model: str, look_up: LookUp) -> Told:
        talk = Talk(model, stream, partial(tracing.tool_span, gated.tracer), look_up)
        with tracing.agent_span(gated.tracer):
            if in_async:
                asyncio.run(_converse_async(server.url, talk))
            else:
                _converse(server.url, talk)
        return Told(talk.text, talk.tokens)

    with ModelServer(script) as server, tracing.instrumented(gated.provider):
        yield run


def _converse(url: str, talk: Talk) -> None:
    with client_of(url) as client:
        while not talk.text:
            answer = client.chat.completions.create(**talk.request())
            talk.hear(_gathered(list(answer)) if talk.stream else _heard(answer))


async def _converse_async(url: str, talk: Talk) -> None:
    async with async_client_of(url) as client:
        while not talk.text:
            answer = await client.chat.completions.create(**talk.request())
            talk.hear(_gathered([chunk async for chunk in answer]) if talk.stream else _heard(answer))


@contextmanager
def handler(gated: Gated, tracing: Tracing, *answers: Answer, **settings: Any) -> Iterator[OpenAI]:
    """Open a span of the program itself, with a traced client to use in it, for which a server has ``answers``."""
    with (
        ModelServer({MODEL: answers, SLOW_MODEL: [says("Too late.", after_s=60)]}) as server,
        client_of(server.url, **settings) as client,
        tracing.instrumented(gated.provider),
        gated.tracer.start_as_current_span("handler"),
    ):
        yield client


class Heard(NamedTuple):
    """An answer of the model, streamed or not."""

    text: str
    asked: Sequence[Asked]
    tokens: Tokens


@dataclass
class Talk:
    """The messages so far. Hears answers and runs the tools that they ask for, until there is a text."""

    model: str
    stream: bool
    tool_span: Callable[[Asked], AbstractContextManager[Span]]
    look_up: LookUp
    messages: list[Any] = field(default_factory=lambda: [{"role": "user", "content": QUESTION}])
    text: str = ""
    tokens: Tokens = (0, 0)

    def request(self) -> dict[str, Any]:
        """Return what the model is asked next."""
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}
        return {"model": self.model, "messages": self.messages, "tools": [LOOK_UP], **streaming}

    def hear(self, heard: Heard) -> None:
        """Take an answer, and run the tools that it asks for."""
        self.text = heard.text
        self.tokens = self.tokens[0] + heard.tokens[0], self.tokens[1] + heard.tokens[1]
        wanted = [
            {"id": asked.call_id, "type": "function", "function": {"name": asked.name, "arguments": asked.arguments}}
            for asked in heard.asked
        ]
        self.messages.append({"role": "assistant", "content": heard.text or None, "tool_calls": wanted})
        for asked in heard.asked:
            self.messages.append({"role": "tool", "tool_call_id": asked.call_id, "content": self._run(asked)})

    def _run(self, asked: Asked) -> str:
        try:
            with self.tool_span(asked):
                return self.look_up(json.loads(asked.arguments)["city"])
        except Busy as error:
            return str(error)


def _heard(answer: ChatCompletion) -> Heard:
    message, usage = answer.choices[0].message, answer.usage
    assert usage is not None
    asked = [
        Asked(call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
        if call.type == "function"
    ]
    return Heard(message.content or "", asked, (usage.prompt_tokens, usage.completion_tokens))


def _gathered(chunks: Sequence[ChatCompletionChunk]) -> Heard:
    usage = chunks[-1].usage
    assert usage is not None
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    asked: dict[int, Asked] = {}
    for part in (part for delta in deltas for part in delta.tool_calls or ()):
        function = part.function
        assert function is not None
        before = asked.get(part.index) or Asked(part.id or "", function.name or "", "")
        asked[part.index] = before._replace(arguments=before.arguments + (function.arguments or ""))
    text = "".join(delta.content or "" for delta in deltas)
    return Heard(text, list(asked.values()), (usage.prompt_tokens, usage.completion_tokens))


@contextmanager
def instrumented(
    instrumentor: type[GenAIInstrumentor | OpenInferenceInstrumentor], provider: TracerProvider, *, content: str = ""
) -> Iterator[None]:
    """Instrument the client, and take the instrumentation away again."""
    with mock.patch.dict(os.environ, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": content}):
        instrumentor().instrument(tracer_provider=provider)
        try:
            yield
        finally:
            instrumentor().uninstrument()


def is_untouched() -> bool:
    """Say whether nothing instruments the client any more."""
    entrances = Completions.create, AsyncCompletions.create, OpenAI.request, AsyncOpenAI.request
    return all(type(entrance) is FunctionType for entrance in entrances)


def _genai_agent_span(tracer: Tracer) -> AbstractContextManager[Span]:
    words = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
    return tracer.start_as_current_span("invoke_agent weather", attributes=words)


def _genai_tool_span(tracer: Tracer, asked: Asked) -> AbstractContextManager[Span]:
    words = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": asked.name,
        "gen_ai.tool.call.id": asked.call_id,
    }
    return tracer.start_as_current_span(f"execute_tool {asked.name}", attributes=words)


def _openinference_agent_span(tracer: Tracer) -> AbstractContextManager[Span]:
    return OITracer(tracer, TraceConfig()).start_as_current_span("weather", openinference_span_kind="agent")


@contextmanager
def _openinference_tool_span(tracer: Tracer, asked: Asked) -> Iterator[Span]:
    with OITracer(tracer, TraceConfig()).start_as_current_span(asked.name, openinference_span_kind="tool") as span:
        span.set_tool(name=asked.name, parameters={})
        span.set_input(asked.arguments)
        yield span


GENAI: Final = Tracing(partial(instrumented, GenAIInstrumentor), _genai_agent_span, _genai_tool_span)
"""OpenTelemetry's instrumentation as it comes: what was said is not recorded."""
GENAI_WITH_CONTENT: Final = Tracing(
    partial(instrumented, GenAIInstrumentor, content="span_only"), _genai_agent_span, _genai_tool_span
)
OPENINFERENCE: Final = Tracing(
    partial(instrumented, OpenInferenceInstrumentor), _openinference_agent_span, _openinference_tool_span
)
TRACINGS: Final = {"genai": GENAI, "genai+content": GENAI_WITH_CONTENT, "openinference": OPENINFERENCE}
