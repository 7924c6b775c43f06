"""OpenInference: kinds of spans, flattened messages, and requests and answers as JSON in one value each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import Request, TokenCounts, ToolCall, Turn
from spangate._dialects._outcome import outcome_of
from spangate._dialects._roles import role_by_key, role_by_scope
from spangate._dialects._values import call_id, first, parsed_object, text
from spangate._records import ABSENT, Outcome, Role, Span

KIND: Final = "openinference.span.kind"
MODEL: Final = "llm.model_name"
_CALL_IDS: Final = ("tool.id", "tool_call.id")
_FAMILY: Final = "openinference.instrumentation"
_KINDS: Final[Mapping[str, Role]] = {
    "LLM": "generation",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "workflow",
}


class OpenInference:
    """Reads what the family has in common, and manual spans. What differs by instrumentation is below this one.

    ``llm.model_name`` is the answer's model with most instrumentations; which ones keep the request's in it is said
    by :meth:`model_name_is_requested`.
    """

    name: ClassVar[str] = "openinference"
    scopes: ClassVar[Mapping[str, Role]] = {
        _FAMILY: "workflow",
        f"{_FAMILY}.bedrock": "generation",
        f"{_FAMILY}.google_genai": "generation",
        f"{_FAMILY}.groq": "generation",
        f"{_FAMILY}.litellm": "generation",
        f"{_FAMILY}.mistralai": "generation",
        f"{_FAMILY}.together": "generation",
        f"{_FAMILY}.vertexai": "generation",
    }
    marks: ClassVar[tuple[str, ...]] = (KIND,)
    payload_keys: ClassVar[frozenset[str]] = values.PAYLOAD_KEYS
    payload_prefixes: ClassVar[tuple[str, ...]] = values.PAYLOAD_PREFIXES

    def role(self, span: Span) -> Role:
        """Say what the span is, by its kind."""
        kind = span.attributes.get(KIND)
        if kind is None:
            return self.unsaid_role(span)
        role = role_by_key(_KINDS, kind) or "other"
        return self.chain_role(span) if role == "workflow" else role

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is: most instrumentations write it only at the end."""
        return role_by_scope(self.scopes, span)

    def chain_role(self, span: Span) -> Role:
        """Say what a chain is: the steps of a loop are iterations."""
        name = span.name
        step = name == "turn" or (name.startswith("Step ") and name[5:].isdecimal())
        return "iteration" if step else "workflow"

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span."""
        return outcome_of(span)

    def usage(self, span: Span) -> TokenCounts:
        """Return the token counts on this very span."""
        return values.usage_of(span.attributes)

    def request(self, span: Span) -> Request:
        """Return what a generation asked for, from the flattened messages and the invocation parameters."""
        attributes = span.attributes
        asked_for = parsed_object(attributes.get(values.PARAMS))
        return Request(
            model=self.requested_model(span, asked_for),
            temperature=asked_for.get("temperature", ABSENT),
            messages=values.messages_in(attributes),
            tools=values.tools_in(attributes),
            params=values.params_in(asked_for),
        )

    def requested_model(self, span: Span, asked_for: Mapping[str, Any]) -> Any:
        """Return the model that was asked for, never the one that answered."""
        found = span.attributes.get("llm.request.model_name", asked_for.get("model", ABSENT))
        if found is ABSENT and self.model_name_is_requested(span):
            return span.attributes.get(MODEL, ABSENT)
        return found

    def model_name_is_requested(self, span: Span) -> bool:
        """Say whether ``llm.model_name`` is the request's: where an application writes it by hand, it is."""
        return not span.scope.startswith(_FAMILY)

    def response_id(self, span: Span) -> str | None:
        """Return the id that the recorded answer holds."""
        return values.response_id_in(span.attributes.get(values.OUTPUT))

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic of a generation."""
        return values.turn_of(span)

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""
        attributes = span.attributes
        return ToolCall(
            call_id(first(attributes, _CALL_IDS)),
            text(attributes.get("tool.name")),
            arguments=attributes.get(values.INPUT, ABSENT),
            result=self.tool_result(span),
        )

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""
        return span.attributes.get(values.OUTPUT, ABSENT)

    def answered(self, span: Span) -> bool:
        """Say whether the generation shows a completion."""
        return values.is_answered(span.attributes)
