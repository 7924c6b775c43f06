"""OpenInference on the OpenAI Agents SDK: answers of the Responses API stand where requests belong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import Request, Turn
from spangate._dialects._messages import asked_in
from spangate._dialects._values import OBJECT, parsed, parsed_object
from spangate._dialects.openinference import OpenInference
from spangate._records import ABSENT, Role, Span

_ANSWER_FIELDS: Final = ("id", "created_at", "object")
_ANSWERS: Final = '[{"id"'
_NAMES: Final[Mapping[str, Role]] = {"response": "generation", "generation": "generation", "turn": "iteration"}


class OpenInferenceOpenAIAgents(OpenInference):
    """With the Responses API the parameters are a dump of the answer: what was asked for is unknown."""

    name: ClassVar[str] = "openinference_openai_agents"
    scopes: ClassVar[Mapping[str, Role]] = {"openinference.instrumentation.openai_agents": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:
        """Say what the span is. A hand-off is written as a tool without a name."""
        role = super().role(span)
        if role == "tool" and "tool.name" not in span.attributes:
            return "other" if span.name == "handoff" or span.name.startswith("handoff to ") else role
        return role

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is, by its name."""
        return _NAMES.get(span.name) or super().unsaid_role(span)

    def request(self, span: Span) -> Request:
        """Return what a generation asked for."""
        found = super().request(span)
        if _is_answer(parsed_object(span.attributes.get(values.PARAMS))):
            return replace(found, model=ABSENT, temperature=ABSENT, params={})
        return found

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic. What was streamed by the chat completions API is told as whole answers only."""
        found = super().turn(span)
        answer = span.attributes.get(values.OUTPUT) if found.asked is None else None
        if not isinstance(answer, str) or not answer.startswith(_ANSWERS) or span.dropped_attributes:
            return found
        answers = parsed(answer)
        items = [item.get("output") for item in answers if isinstance(item, OBJECT)] if answers else []
        return replace(found, asked=asked_in(items[0])) if len(items) == 1 else found

    def model_name_is_requested(self, span: Span) -> bool:
        """Say whether ``llm.model_name`` is the request's: with the chat completions API it is."""
        return span.name == "generation"


def _is_answer(asked_for: Mapping[str, Any]) -> bool:
    return any(field in asked_for for field in _ANSWER_FIELDS)
