"""Recorded runs for pages: a coding agent that a person can follow, broken in some places, and runs of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from spangate import archive
from spangate._dialects import classify
from spangate._records import Event, Span
from spangate.cli._group import spangate
from tests.spans import span

SECRET = "sk-live-4f9c1d7a"  # noqa: S105  nobody has it
BEGAN = 1_780_000_000.0


def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(spangate, list(arguments), input=stdin)


def recording(path: Path, *runs: Sequence[Span]) -> str:
    archive.write(path, [span for run in runs for span in run])
    return str(path)


def page_of(path: Path, *arguments: str) -> str:
    """Write a page beside a recording, and return where it is."""
    page = path.with_suffix(".html")
    done = invoke("report", *arguments, "-o", str(page), str(path))
    assert done.exit_code == 0, done.output
    return str(page)


def agent(trace: int = 1, name: str = "invoke_agent fixer", took: float = 20.0, **fields: Any) -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name.partition(" ")[2]}
    made = {"trace_id": trace, "start": BEGAN, "end": BEGAN + took, "attributes": attributes}
    return span("agent", name, **{**made, **fields})


def generation(parent: Span, at: float, took: float, *, asks: str = "", said: str = "", **fields: Any) -> Span:
    prompt = "Repair the build. " * (60 if asks else 1)
    messages = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": said or f"I will call {asks}."}]}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small-2",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps(answer),
        "gen_ai.usage.input_tokens": 1_900,
        "gen_ai.usage.output_tokens": 140,
    }
    return _within(parent, "generation", "chat small-2", at, took, attributes, **fields)


def tool(parent: Span, name: str, at: float, took: float | None, arguments: Any, result: Any, **fields: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": json.dumps(result),
    }
    return _within(parent, "tool", f"execute_tool {name}", at, took, attributes, **fields)


def _within(
    parent: Span, role: Any, name: str, at: float, took: float | None, attributes: dict[str, Any], **fields: Any
) -> Span:
    begin = BEGAN + at
    made = {"start": begin, "end": None if took is None else begin + took, "attributes": attributes}
    return span(role, name, parent=parent, **{**made, **fields})


def sound(trace: int = 1) -> list[Span]:
    """Return a run with nothing wrong in it."""
    root = agent(trace)
    return _classified(
        [
            root,
            generation(root, 0.4, 2.6, asks="run_tests"),
            tool(root, "run_tests", 3.1, 4.2, {"path": "tests"}, {"failed": 1}),
            generation(root, 7.5, 2.2, asks="read_file"),
            tool(root, "read_file", 9.8, 0.4, {"path": "app.py"}, "def add(a, b): return a - b"),
            generation(root, 10.4, 3.1, asks="write_file"),
            tool(root, "write_file", 13.6, 0.5, {"path": "app.py", "text": "def add(a, b): return a + b"}, "ok"),
            tool(root, "run_tests", 14.2, 3.9, {"path": "tests"}, {"failed": 0}),
            generation(root, 18.2, 1.7, said="All tests pass."),
        ]
    )


def broken(trace: int = 2) -> list[Span]:
    """Return the run with a tool that never ended, one that failed, a child agent, and a secret in a header."""
    root = agent(trace)
    failure = Event("exception", {"exception.type": "TimeoutError", "exception.message": f"token={SECRET} timed out"})
    headers = {"url": "https://ci.example", "headers": {"Authorization": f"Bearer {SECRET}"}, "api_key": SECRET}
    child = _within(root, "agent", "invoke_agent reviewer", 11.0, 5.0, {"gen_ai.operation.name": "invoke_agent"})
    return _classified(
        [
            root,
            generation(root, 0.4, 2.6, asks="run_tests"),
            tool(root, "run_tests", 3.1, 4.2, {"path": "tests"}, {"failed": 1}),
            tool(
                root, "fetch", 3.2, 2.0, headers, "", status="ERROR", status_description="timed out", events=[failure]
            ),
            generation(root, 7.5, 2.2, asks="read_file"),
            tool(root, "read_file", 9.8, None, {"path": "app.py"}, ""),
            child,
            generation(child, 11.2, 2.0, said="The change looks right."),
            generation(child, 13.3, 2.1, said="Merge it."),
            generation(root, 18.2, 1.7, said="All tests pass."),
        ]
    )


def changed(trace: int = 3) -> list[Span]:
    """Return the sound run with a tool more, one less, and one that was asked for something else."""
    root = agent(trace)
    return _classified(
        [
            root,
            generation(root, 0.4, 2.6, asks="run_tests"),
            tool(root, "run_tests", 3.1, 4.2, {"path": "tests"}, {"failed": 1}),
            generation(root, 7.5, 2.2, asks="search"),
            tool(root, "search", 9.8, 0.7, {"query": "add"}, "app.py"),
            generation(root, 10.6, 3.1, asks="write_file"),
            tool(root, "write_file", 13.8, 0.5, {"path": "lib/app.py", "text": "def add(a, b): return a + b"}, "ok"),
            tool(root, "run_tests", 14.4, 3.9, {"path": "tests"}, {"failed": 0}),
            generation(root, 18.4, 1.5, said="All tests pass."),
        ]
    )


def many(number: int, trace: int = 9, *, leak: int | None = None) -> list[Span]:
    """Return a run of so many spans: iterations of ten calls each. The span with the number ``leak`` never ends."""
    step = 0.01
    root = agent(trace, took=(number + 20) * step)
    made = [root]
    turn = root
    while len(made) < number:
        at = len(made) * step
        if len(made) % 10 == 1:
            turn = _within(root, "iteration", "turn", at, 9.9 * step, {"langgraph.step": 1})
            made.append(turn)
        elif len(made) % 2:
            made.append(generation(turn, at, step / 2, said="on"))
        else:
            took = None if len(made) == leak else step / 2
            made.append(tool(turn, f"tool_{len(made) % 7}", at, took, {"n": len(made)}, "ok"))
    return _classified(made)


def _classified(spans: list[Span]) -> list[Span]:
    for one in spans:
        classify(one)
    return spans
