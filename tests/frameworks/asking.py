"""The same request by every API, client and source of its fingerprint."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final
from unittest import mock

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

import spangate
from spangate import wire
from tests.frameworks.clients import NO_TLS

MODEL: Final = "model-a"
SYSTEM: Final = "Answer in one word."
USER: Final = "Does it rain?"

CHAT: Final = {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]}
RESPONSES: Final = {"instructions": SYSTEM, "input": USER}
MESSAGES: Final = {"system": SYSTEM, "messages": [{"role": "user", "content": USER}], "max_tokens": 99}
REQUESTS: Final[Mapping[str, dict[str, Any]]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
"""What is asked, in the words of each API."""


def ask(url: str, api: str, max_retries: int = 0, **request: Any) -> None:
    """Ask by a client for threads, and read the whole answer."""
    http = httpx2.Client(verify=NO_TLS)
    with _client(api, OpenAI, Anthropic, url, http, max_retries) as client:
        answer: Any = _create(client, api)(**request)
        for _ in answer if request.get("stream") else ():
            pass


def ask_async(url: str, api: str, **request: Any) -> None:
    """Ask by a client for coroutines."""

    async def asking() -> None:
        http = httpx2.AsyncClient(verify=NO_TLS)
        async with _client(api, AsyncOpenAI, AsyncAnthropic, url, http) as client:
            answer = await _create(client, api)(**request)
            if request.get("stream"):
                await _drain(answer)

    asyncio.run(asking())


async def _drain(answer: AsyncIterator[Any]) -> None:
    async for _ in answer:
        pass


def _client(api: str, openai: Any, anthropic: Any, url: str, http: Any, max_retries: int = 0) -> Any:
    if api == "messages":
        return anthropic(base_url=url.removesuffix("/v1"), api_key="-", max_retries=max_retries, http_client=http)
    return openai(base_url=url, api_key="-", max_retries=max_retries, http_client=http)


def _create(client: Any, api: str) -> Callable[..., Any | Awaitable[Any]]:
    create: Callable[..., Any] = {
        "chat": lambda: client.chat.completions.create,
        "responses": lambda: client.responses.create,
        "messages": lambda: client.messages.create,
    }[api]()
    return create


@contextmanager
def instrumented(provider: TracerProvider, **environment: str) -> Iterator[None]:
    """Have OpenTelemetry's instrumentations record the calls of both clients."""
    off = {"ANTHROPIC_OPEN_TELEMETRY": "false"}  # the client records spans of its own, too
    with mock.patch.dict(os.environ, {**off, **environment}):
        both = OpenAIInstrumentor(), AnthropicInstrumentor()
        for one in both:
            one.instrument(tracer_provider=provider)
        try:
            yield
        finally:
            for one in both:
                one.uninstrument()


@contextmanager
def wired() -> Iterator[None]:
    """Look at what is sent."""
    wire.instrument()
    try:
        yield
    finally:
        wire.uninstrument()


CONTENT: Final = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}
HOOK: Final = {"OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "spangate"}
SOURCES: Final[Mapping[str, tuple[Mapping[str, str], Callable[[], AbstractContextManager[Any]]]]] = {
    "attributes": (CONTENT, nullcontext),
    "hook": (HOOK, nullcontext),
    "wire": ({}, wired),
    "explicit": ({}, lambda: spangate.generation(system=SYSTEM, user=USER)),
}
"""Each source with the environment and the block that switch it on."""
