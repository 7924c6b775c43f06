"""The agent of the demonstration: its model is scripted, its tools really read, write and run what they are told to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from opentelemetry.trace import SpanKind, Tracer

MODEL: Final = "scripted-model"
TASK: Final = "Make the tests pass."
LAST_WORDS: Final = "The tests pass."

_BROKEN: Final = "def total(prices, discount):\n    return sum(prices) - discount\n"
_REPAIRED: Final = "def total(prices, discount):\n    return sum(prices) * (100 - discount) / 100\n"
_TEST: Final = """\
from prices import total

found = total([10.0, 20.0], discount=10)
print("1 passed" if found == 27.0 else f"1 failed: the total is {found}, not 27.0")
raise SystemExit(found != 27.0)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What the scripted model asks for in one turn: a tool, and the arguments to call it with."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)


RUN: Final = Step("run_tests")
READ: Final = Step("read_file", {"path": "prices.py"})
WRITE: Final = Step("write_file", {"path": "prices.py", "text": _REPAIRED})

Dispatch: TypeAlias = Callable[[Step, Callable[[], str]], str]
"""Calls the tool of a step and returns its result: here, or wherever the agent has its tools run."""


def here(_step: Step, tool: Callable[[], str]) -> str:
    """Call a tool as any function is called."""
    return tool()


def tests_in_a_bare_thread(step: Step, tool: Callable[[], str]) -> str:
    """Run the tests in a thread. Nothing takes the trace context there: the mistake that is so easily made."""
    if step is not RUN:
        return tool()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(tool).result()


def repair(tracer: Tracer, directory: Path, script: Sequence[Step], dispatch: Dispatch) -> str:
    """Let the agent work in ``directory``, and return its last words."""
    (directory / "prices.py").write_text(_BROKEN, encoding="utf-8")
    (directory / "test_prices.py").write_text(_TEST, encoding="utf-8")
    messages = [_message("user", {"type": "text", "content": TASK})]
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "fixer"}
    with tracer.start_as_current_span("invoke_agent fixer", attributes=attributes):
        for number, step in enumerate(script, 1):
            call_id = f"call_{number}"
            call = {"type": "tool_call", "id": call_id, "name": step.tool, "arguments": step.arguments}
            _ask(tracer, messages, call)
            result = dispatch(step, partial(_use, tracer, directory, step, call_id))
            messages.append(_message("tool", {"type": "tool_call_response", "id": call_id, "response": result}))
        _ask(tracer, messages, {"type": "text", "content": LAST_WORDS})
    return LAST_WORDS


def _message(role: str, part: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _ask(tracer: Tracer, messages: list[dict[str, Any]], answer: Mapping[str, Any]) -> None:
    """Send all messages to the model, which answers with ``answer``, and traces it as the GenAI conventions ask."""
    sent, received = json.dumps(messages), json.dumps([_message("assistant", answer)])
    request = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL, "gen_ai.provider.name": "script"}
    with tracer.start_as_current_span(f"chat {MODEL}", kind=SpanKind.CLIENT, attributes=request) as span:
        span.set_attribute("gen_ai.input.messages", sent)
        span.set_attribute("gen_ai.output.messages", received)
        span.set_attribute("gen_ai.usage.input_tokens", len(sent) // 4)
        span.set_attribute("gen_ai.usage.output_tokens", len(received) // 4)
    messages.append(_message("assistant", answer))


def _use(tracer: Tracer, directory: Path, step: Step, call_id: str) -> str:
    """Execute a tool, and trace it as the GenAI conventions ask."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step.tool,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(step.arguments),
    }
    with tracer.start_as_current_span(f"execute_tool {step.tool}", attributes=attributes) as span:
        result = _TOOLS[step.tool](directory, **step.arguments)
        span.set_attribute("gen_ai.tool.call.result", result)
    return result


def _run_tests(directory: Path) -> str:
    command = [sys.executable, "-B", "-E", "-s", "test_prices.py"]  # -B: prices.py changes faster than caches notice
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)  # noqa: S603  our own
    return f"{done.stdout.strip()} (exit code {done.returncode})"


def _read_file(directory: Path, path: str) -> str:
    return (directory / path).read_text(encoding="utf-8")


def _write_file(directory: Path, path: str, text: str) -> str:
    return f"{(directory / path).write_text(text, encoding='utf-8')} characters written"


_TOOLS: Final[Mapping[str, Callable[..., str]]] = {
    "run_tests": _run_tests,
    "read_file": _read_file,
    "write_file": _write_file,
}
