"""Builders of spans that say what they used, in the names of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

from typing import Any

from spangate._records import ABSENT, Role, Span
from tests.spans import span

CLIENT = "opentelemetry.instrumentation.genai.openai"
FRAMEWORK = "pydantic-ai"
ANSWER = {"gen_ai.response.finish_reasons": ("stop",)}


def used(given: Any = ABSENT, answered: Any = ABSENT, **parts: Any) -> dict[str, Any]:
    """Return usage attributes: ``parts`` are ``total``, ``cached``, ``written`` and ``reasoning``."""
    names = {
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": answered,
        "gen_ai.usage.total_tokens": parts.get("total", ABSENT),
        "gen_ai.usage.cache_read.input_tokens": parts.get("cached", ABSENT),
        "gen_ai.usage.cache_creation.input_tokens": parts.get("written", ABSENT),
        "gen_ai.usage.reasoning.output_tokens": parts.get("reasoning", ABSENT),
    }
    return {name: value for name, value in names.items() if value is not ABSENT}


def call(
    parent: Span | None,
    given: Any = ABSENT,
    answered: Any = ABSENT,
    *,
    response: str | None = None,
    model: str | None = None,
    attributes: dict[str, Any] | None = None,
    **fields: Any,
) -> Span:
    """Make a generation span; without counts it does not say what it used."""
    known: dict[str, Any] = {"gen_ai.operation.name": "chat", **used(given, answered), **(attributes or {})}
    if response is not None:
        known["gen_ai.response.id"] = response
    if model is not None:
        known["gen_ai.request.model"] = model
    return span("generation", "chat", parent=parent, **{"scope": CLIENT, "attributes": known, **fields})


def agent(given: Any = ABSENT, answered: Any = ABSENT, *, parent: Span | None = None, **fields: Any) -> Span:
    """Make an agent span, with a total of its own if counts are given."""
    return container("agent", given, answered, parent=parent, **{"end": 100.0, **fields})


def container(
    role: Role, given: Any = ABSENT, answered: Any = ABSENT, *, parent: Span | None = None, **fields: Any
) -> Span:
    """Make a span above calls, with a total of its own if counts are given."""
    attributes = {"gen_ai.operation.name": "invoke_agent", **used(given, answered)}
    return span(role, parent=parent, **{"scope": CLIENT, "attributes": attributes, "end": 50.0, **fields})


def tool(
    parent: Span | None, result: Any = ABSENT, *, call_id: str | None = None, name: str = "search", **fields: Any
) -> Span:
    """Make a tool span; without a result it does not say what it returned."""
    known = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.call.result": result}
    attributes: dict[str, Any] = {
        key: value for key, value in known.items() if value is not ABSENT and value is not None
    }
    attributes |= {"gen_ai.operation.name": "execute_tool", **fields.pop("attributes", {})}
    return span("tool", name, parent=parent, **{"scope": CLIENT, "attributes": attributes, **fields})
