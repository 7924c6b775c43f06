"""One iteration of a loop, and what a program does in it: calls of models and of tools."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.trace import Span

from spangate._dialects._base import Request
from spangate._dialects.genai import CALL_ID
from spangate._native.content import Messages, digest, plain
from spangate._native.course import Turn
from spangate._native.loop import Loop
from spangate._native.model_call import ModelCall
from spangate._native.tool_call import ToolCall
from spangate._native.work import Cause, evidence


class Iteration:
    """What ``run.iterations()`` yields. It ends when the next one is asked for, at a halt, or with its run.

    Its calls may be made from any thread and any task: each is a span below the iteration.
    """

    def __init__(self, loop: Loop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn
        self._standing = loop.standing_of(turn)

    @property
    def number(self) -> int:
        """Which iteration it is, counted from 1."""
        return self._turn.number

    @property
    def budget_remaining(self) -> int:
        """How many iterations the run may take after this one."""
        return (self._loop.course.max_iters or self.number) - self.number

    @property
    def span(self) -> Span:
        """The span ``agent.iter``, for attributes of your own."""
        return self._standing.span

    def end(self) -> None:
        """End it now, rather than when the next one is asked for.

        Raises:
            SpangateError: work in it is open.
        """
        self._loop.end(self._turn)

    def work_on(self, work: Any) -> None:
        """Say what the iteration works on, before it does: iterations with equal work are retries of each other.

        Without this it is the input of its first call. ``work`` is any JSON; its hash is ``agent.work_id``.
        """
        self._loop.work_on(self._turn, self._standing, digest(work))

    def llm(  # noqa: PLR0913  a request has so many parts
        self,
        model: str | None = None,
        messages: Messages | None = None,
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        temperature: float | None = None,
        role: str = "assistant",
        provider: str | None = None,
        caused_by: Iterable[Cause] = (),
        generation_id: str | None = None,
        **params: Any,
    ) -> ModelCall:
        """Make a call of a model, to be entered by ``with``; its ``answer`` takes what came back.

        Args:
            model: The model that is asked for.
            messages: What is sent: a text, chat messages, or messages with parts as in the GenAI conventions.
            system: The system text, where it is apart from the messages.
            tools: The definitions of the tools that are offered, as they are sent.
            temperature: As it is sent.
            role: What part the call has in the loop, as ``planner`` or ``critic``.
            provider: Who serves the model, as ``openai``.
            caused_by: What it follows from: other calls of this run, or ids of their spans.
            generation_id: By what id the call is compared between runs.
            params: The other decoding parameters under the names of the conventions, as ``top_p=0.9``.
        """
        asked = {"model": model, "temperature": temperature, "system": system, "messages": messages, "tools": tools}
        given: dict[str, Any] = {part: plain(value) for part, value in asked.items() if value is not None}
        request = Request(**given, params=params)
        facts = {"agent.role": role, "gen_ai.provider.name": provider, **evidence(caused_by, generation_id)}
        return ModelCall(self._loop, self._turn, request, facts)

    def tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        schema: Any = None,
        call_id: str | None = None,
        caused_by: Iterable[Cause] = (),
        generation_id: str | None = None,
    ) -> ToolCall:
        """Make a call of a tool, to be entered by ``with``; its ``result`` takes what the tool returned.

        Args:
            name: The tool.
            arguments: What it is called with: JSON.
            schema: What it accepts: JSON. A run halts if that changes while it goes on.
            call_id: The id of the call in the model's answer.
            caused_by: What it follows from: other calls of this run, or ids of their spans. The model's call that asked
                for it has to be among them, or a retry; else the ``causality`` gate refuses the run.
            generation_id: As of a model's call.
        """
        facts = {CALL_ID: call_id, **evidence(caused_by, generation_id)}
        return ToolCall(self._loop, self._turn, name, arguments, schema, facts)

    def call(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        **more: Any,
    ) -> Any:
        """Call a function as a tool, with its arguments by name, and return what it returns.

        Args:
            function: The tool. That of an async function is awaited: ``await it.call(search, {"q": "tea"})``.
            arguments: As a model gives them.
            name: The tool's name; None: the function's.
            more: As for :meth:`tool`.
        """
        called = name or str(getattr(function, "__name__", type(function).__name__))
        tool = self.tool(called, arguments, **more)
        if inspect.iscoroutinefunction(function):
            return _awaited(tool, function(**(arguments or {})))
        with tool:
            value = function(**(arguments or {}))
            tool.result(value)
        return value


async def _awaited(tool: ToolCall, answer: Awaitable[Any]) -> Any:
    with tool:
        value = await answer
        tool.result(value)
    return value
