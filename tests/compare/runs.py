"""Runs for tests of the diff: recorded through a real provider with a gate, kept before they are released."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any

from opentelemetry.trace import Tracer

import spangate
from spangate._records import Finding
from spangate._run import Run
from spangate.compare import Allowance, Change, Difference, Rules, diff
from spangate.gates import default_gates
from spangate.testing import GatedProvider

TODAY = date(2026, 6, 15)
PROMPT = [{"role": "user", "parts": [{"type": "text", "content": "breakfast"}]}]
Call = tuple[str, Mapping[str, Any] | None]


def recorded(work: Callable[[GatedProvider], object]) -> Run:
    """Run some work under a gate and return the one run that it makes, as the gates saw it."""
    kept: list[Run] = []

    def keep(run: Run) -> Iterator[Finding]:
        kept.append(replace(run, spans=[*run.spans], records=[*run.records]))
        yield from ()

    with GatedProvider([*default_gates(), keep]) as provider:
        work(provider)
    (run,) = kept
    return run


def agent(*turns: Sequence[Call], name: str = "cook", prompt: Any = PROMPT, model: str = "small") -> Run:
    """Record an agent that goes through turns, each a model call that asks for these tools, which run at once."""

    def work(provider: GatedProvider) -> None:
        with opened(provider.get_tracer("kitchen"), f"invoke_agent {name}", "invoke_agent"):
            converse(provider.get_tracer("kitchen"), turns, prompt, model)

    return recorded(work)


def converse(tracer: Tracer, turns: Sequence[Sequence[Call]], prompt: Any = PROMPT, model: str = "small") -> None:
    """Make model calls that ask for tools by ids, and run these."""
    messages = [*prompt]
    for number, calls in enumerate([*turns, ()]):
        asked: list[dict[str, Any]] = [
            {"type": "tool_call", "id": f"call_{number}_{at}", "name": tool, "arguments": arguments}
            for at, (tool, arguments) in enumerate(calls)
        ]
        said = [{"role": "assistant", "parts": asked or [{"type": "text", "content": "done"}]}]
        chat(tracer, messages, said, model)
        messages += said if asked else []
        for part in asked:
            call_tool(tracer, part["name"], part["arguments"], call_id=part["id"])
            answer = {"type": "tool_call_response", "id": part["id"], "response": "fine"}
            messages.append({"role": "tool", "parts": [answer]})


def chat(tracer: Tracer, messages: Any, said: Any, model: str = "small") -> None:
    """Record a model call."""
    with opened(
        tracer,
        f"chat {model}",
        "chat",
        {
            "gen_ai.request.model": model,
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps(said),
            "gen_ai.tool.definitions": "[]",
        },
    ):
        pass


def call_tool(tracer: Tracer, tool: str, arguments: Any = None, *, call_id: str | None = None) -> None:
    """Record a call of a tool. Without arguments, none are recorded."""
    known = {"gen_ai.tool.name": tool}
    known |= {} if arguments is None else {"gen_ai.tool.call.arguments": json.dumps(arguments)}
    known |= {} if call_id is None else {"gen_ai.tool.call.id": call_id}
    with opened(tracer, f"execute_tool {tool}", "execute_tool", known):
        pass


@contextmanager
def opened(tracer: Tracer, name: str, operation: str, attributes: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Open a span of the GenAI conventions."""
    told = {"gen_ai.operation.name": operation, **(attributes or {})}
    with tracer.start_as_current_span(name, attributes=told):
        yield


def changes(found: Difference) -> list[tuple[str, str]]:
    """Return what changed, without where."""
    return [(change.kind, change.name) for change in found.changes]


def only(found: Difference) -> Change:
    """Return the one change that there is."""
    (change,) = found.changes
    return change


def compared(a: Run, b: Run, *allowed: Allowance, **settings: Any) -> Difference:
    """Diff two runs by the day of these tests; settings that a rule has set it."""
    rules = {key: settings.pop(key) for key in [*settings] if key in Rules.__slots__}
    return diff(a, b, rules=Rules(**rules), allowed=allowed, **{"today": TODAY, **settings})


def loop(*turns: Sequence[Call], name: str = "cook", prompt: str = "breakfast", record_content: bool = True) -> Run:
    """Record the same as a loop of one's own: an iteration a turn, its tools one after the other."""

    def work(provider: GatedProvider) -> None:
        with spangate.run(
            "breakfast", name=name, max_iters=len(turns) + 1, tracer_provider=provider, record_content=record_content
        ) as run:
            waiting = iter(turns)
            for it in run.iterations():
                with it.llm("small", prompt, tools=[], temperature=0.0) as call:
                    call.answer("done", input_tokens=1, output_tokens=1)
                for tool, arguments in next(waiting, ()):
                    with it.tool(tool, arguments) as running:
                        running.result("fine")
                if it.number > len(turns):
                    run.halt("done")

    return recorded(work)
