"""OpenTelemetry's GenAI conventions, current and old names, and the instrumentations that write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spangate._dialects import _events, _genai_values
from spangate._dialects._base import NO_TURN, Request, TokenCounts, ToolCall, Turn
from spangate._dialects._definitions import offered_in
from spangate._dialects._messages import asked_in, received_in
from spangate._dialects._outcome import outcome_of
from spangate._dialects._roles import OPERATION_ROLES, role_by_key, role_by_name, role_by_scope, scope_owner
from spangate._dialects._values import call_id, first, text
from spangate._records import ABSENT, Outcome, Role, Span

OPERATION: Final = "gen_ai.operation.name"
MCP_METHOD: Final = "mcp.method.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_NAME: Final = "gen_ai.tool.name"
_TOOL_SPAN: Final = "execute_tool "
ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "tool_arguments")
RESULT: Final = ("gen_ai.tool.call.result", "tool_response")


class GenAI:
    """Reads ``gen_ai.*``. Also the ground on which the dialects of frameworks that write these names stand."""

    name: ClassVar[str] = "genai"
    scopes: ClassVar[Mapping[str, Role]] = {
        "opentelemetry.instrumentation.genai": "workflow",
        "opentelemetry.instrumentation.genai.openai": "generation",
        "opentelemetry.instrumentation.genai.anthropic": "generation",
        "opentelemetry.instrumentation.openai_v2": "generation",
        "opentelemetry.instrumentation.google_genai": "generation",
        "opentelemetry.instrumentation.botocore.bedrock-runtime": "generation",
        "opentelemetry.util.genai.handler": "generation",
    }
    marks: ClassVar[tuple[str, ...]] = (OPERATION,)
    names: ClassVar[Mapping[str, Role]] = OPERATION_ROLES
    payload_keys: ClassVar[frozenset[str]] = _genai_values.PAYLOAD_KEYS
    payload_prefixes: ClassVar[tuple[str, ...]] = _genai_values.PAYLOAD_PREFIXES

    def role(self, span: Span) -> Role:
        """Say what the span is, by its operation."""
        attributes = span.attributes
        operation = attributes.get(OPERATION)
        if operation is None:
            return self.unsaid_role(span)
        role = role_by_key(OPERATION_ROLES, operation) or "other"
        if role == "tool" and span.kind == "CLIENT" and MCP_METHOD in attributes:
            return "transport"  # the message that carries a call, inside the span of the call
        return role

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without an operation is, by its name and scope."""
        if MCP_METHOD in span.attributes:
            return "transport"
        if scope_owner(self.scopes, span.scope) is None:
            asks = REQUEST_MODEL in span.attributes and span.kind not in ("SERVER", "CONSUMER")
            return "generation" if asks else "other"
        return role_by_name(self.names, span) or role_by_scope(self.scopes, span)

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span."""
        return outcome_of(span)

    def usage(self, span: Span) -> TokenCounts:
        """Return the token counts on this very span."""
        return _genai_values.usage_of(span.attributes)

    def request(self, span: Span) -> Request:
        """Return what a generation asked for."""
        return _genai_values.request_of(span)

    def response_id(self, span: Span) -> str | None:
        """Return the id that the model's server gave the answer."""
        return text(span.attributes.get("gen_ai.response.id"))

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic of a generation, from message attributes, else from events."""
        if not _genai_values.tells_turn(span):
            return NO_TURN
        attributes = span.attributes
        definitions = attributes.get(_genai_values.DEFINITIONS, ABSENT)
        sent = attributes.get(_genai_values.INPUT, ABSENT)
        answer = attributes.get(_genai_values.OUTPUT, ABSENT)
        if sent is ABSENT and answer is ABSENT:
            flat = _genai_values.flat_turn(span)
            if flat is not None:
                return flat
            told = _events.told_by(span.events) if span.events else _events.NOTHING
            sent, answer = told.sent, told.answer
            definitions = told.definitions if definitions is ABSENT else definitions
        return Turn(
            asked=None if answer is ABSENT else asked_in(answer),
            received=None if sent is ABSENT else received_in(sent),
            offered=None if definitions is ABSENT else offered_in(definitions),
        )

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""
        attributes = span.attributes
        name = text(attributes.get(TOOL_NAME))
        if name is None and span.name.startswith(_TOOL_SPAN):
            name = text(span.name[len(_TOOL_SPAN) :])
        return ToolCall(
            call_id(attributes.get(CALL_ID)),
            name,
            first(attributes, ARGUMENTS),
            self.tool_result(span),
        )

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""
        return first(span.attributes, RESULT)

    def answered(self, span: Span) -> bool:
        """Say whether the generation shows a completion: messages, or why they ended."""
        return _genai_values.is_answered(span.attributes) or _events.tell_answer(span.events)
