"""Builders of generations and tool spans that record their calls, in the names of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from spangate._records import Span
from tests.spans import span

SCOPE = "opentelemetry.instrumentation.genai.openai"

Asked: TypeAlias = tuple[str | None, str] | tuple[str | None, str, Any]
"""Call id, name and, if they are recorded, arguments."""


def chat(
    parent: Span | None,
    at: float,
    *,
    asked: Sequence[Asked] | None = (),
    received: Sequence[str] | None = (),
    name: str = "chat",
    took: float = 0.5,
    **fields: Any,
) -> Span:
    """Make a generation that asked for calls and had the results of the ids ``received`` in its input.

    None says that the messages were not recorded. ``attributes`` are added to those of the messages.
    """
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", **fields.pop("attributes", {})}
    if received is not None:
        results = [{"type": "tool_call_response", "id": call_id, "response": "ok"} for call_id in received]
        attributes["gen_ai.input.messages"] = json.dumps([{"role": "tool", "parts": results}])
    if asked is not None:
        parts = [_part(call) for call in asked]
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    whole: dict[str, Any] = {"scope": SCOPE, "kind": "CLIENT", "attributes": attributes, **fields}
    return span("generation", name, parent=parent, start=at, end=at + took, **whole)


def _part(call: Asked) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "tool_call", "id": call[0], "name": call[1]}
    return part if len(call) == 2 else {**part, "arguments": call[2]}


def tool(
    parent: Span | None, at: float, name: str | None, call_id: str | None = None, arguments: Any = None, **fields: Any
) -> Span:
    """Make a tool span of 0.1 s that says what it executed, as far as it is given."""
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool"}
    known = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": arguments}
    attributes.update({key: value for key, value in known.items() if value is not None})
    whole: dict[str, Any] = {"scope": SCOPE, "attributes": attributes, **fields}
    return span("tool", name or "execute", parent=parent, start=at, end=at + 0.1, **whole)
