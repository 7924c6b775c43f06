"""OpenLLMetry (Traceloop): GenAI names, kinds of its own for workflows and tasks, and older flattened messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects._base import ToolCall, Turn
from spangate._dialects._calls import ITEM_ID
from spangate._dialects._roles import OPERATION_ROLES, role_by_key, role_by_name, role_by_scope
from spangate._dialects._values import text
from spangate._dialects.genai import GenAI
from spangate._records import ABSENT, Role, Span

KIND: Final = "traceloop.span.kind"
REQUEST_TYPE: Final = "llm.request.type"
_INSTRUMENTATION: Final = "opentelemetry.instrumentation."
_MODELS: Final = (
    "alephalpha",
    "anthropic",
    "bedrock",
    "cohere",
    "google_generativeai",
    "groq",
    "mistralai",
    "ollama",
    "openai",
    "replicate",
    "sagemaker",
    "together",
    "transformers",
    "vertexai",
    "voyageai",
    "watsonx",
    "writer",
)
_KINDS: Final[Mapping[str, Role]] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
    "task": "workflow",
    "handoff": "other",
}
_REQUEST_TYPES: Final[Mapping[str, Role]] = {"chat": "generation", "completion": "generation"}
_LAST_WORDS: Final[Mapping[str, Role]] = {
    **_KINDS,
    "chat": "generation",
    "completion": "generation",
    "response": "generation",
    "embeddings": "other",
    "image_generate": "other",
    "moderation": "other",
}
_ENTITY: Final = "traceloop.entity."


class Traceloop(GenAI):
    """A Responses API item has an id of its own, and this family writes that where the call id belongs."""

    name: ClassVar[str] = "traceloop"
    scopes: ClassVar[Mapping[str, Role]] = {
        **dict.fromkeys([_INSTRUMENTATION + model for model in _MODELS], "generation"),
        "traceloop.tracer": "workflow",
        _INSTRUMENTATION + "agno": "workflow",
        _INSTRUMENTATION + "haystack": "workflow",
        _INSTRUMENTATION + "llamaindex": "workflow",
        _INSTRUMENTATION + "mcp": "transport",
    }
    marks: ClassVar[tuple[str, ...]] = (KIND, REQUEST_TYPE)
    payload_keys: ClassVar[frozenset[str]] = GenAI.payload_keys | {
        "traceloop.entity.input",
        "traceloop.entity.output",
        "gen_ai.task.input",
        "gen_ai.task.output",
    }
    payload_prefixes: ClassVar[tuple[str, ...]] = (*GenAI.payload_prefixes, "traceloop.prompt.")

    def role(self, span: Span) -> Role:
        """Say what the span is, by its kind, else by its operation."""
        kind = span.attributes.get(KIND)
        if kind is None:
            return super().role(span)
        role = role_by_key(_KINDS, kind)
        return self.task_role(span) if kind == "task" else role or super().role(span)

    def task_role(self, span: Span) -> Role:  # noqa: ARG002 - other instrumentations look at the span
        """Say what a task is: by itself a part of a workflow."""
        return "workflow"

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span with neither kind nor operation is: by its request, its name, its scope."""
        asked_for = span.attributes.get(REQUEST_TYPE)
        if asked_for is not None:
            return role_by_key(_REQUEST_TYPES, asked_for) or "other"
        last_word = span.name.rpartition(".")[2]
        found = role_by_name(OPERATION_ROLES, span) or _LAST_WORDS.get(last_word)
        return found or role_by_scope(self.scopes, span)

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed. Old spans call it an entity."""
        call = super().tool_call(span)
        attributes = span.attributes
        if call.name is None:
            call = replace(call, name=text(attributes.get(_ENTITY + "name")))
        if call.arguments is ABSENT:
            call = replace(call, arguments=attributes.get(_ENTITY + "input", ABSENT))
        return call

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""
        found = super().tool_result(span)
        return found if found is not ABSENT else span.attributes.get(_ENTITY + "output", ABSENT)

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic of a generation. Where only the id of an item is known, the call id is not."""
        found = super().turn(span)
        if found.asked and any(_is_item(call) for call in found.asked):
            return replace(found, asked=[replace(c, call_id=None) if _is_item(c) else c for c in found.asked])
        return found


def _is_item(call: ToolCall) -> bool:
    return call.call_id is not None and call.call_id.startswith(ITEM_ID)
