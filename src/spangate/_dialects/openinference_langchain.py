"""OpenInference on LangChain and LangGraph: everything is written at the end, the graph is told in ``metadata``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import ToolCall
from spangate._dialects._langgraph import is_plumbing
from spangate._dialects._outcome import outcome_of
from spangate._dialects._values import call_id, parsed_object
from spangate._dialects.openinference import KIND, OpenInference
from spangate._records import Outcome, Role, Span

_STEP: Final = '"langgraph_step"'
_METADATA: Final = '"response_metadata"'


class OpenInferenceLangChain(OpenInference):
    """A node of a graph is one step of its loop; what runs below a node is plumbing or a graph of its own."""

    name: ClassVar[str] = "openinference_langchain"
    scopes: ClassVar[Mapping[str, Role]] = {"openinference.instrumentation.langchain": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is. Chat models are named after their class."""
        name = span.name
        if name.startswith("Chat") and not name.startswith("ChatPrompt"):
            return "generation"
        return super().unsaid_role(span)

    def chain_role(self, span: Span) -> Role:
        """Say what a chain is, by the place in the graph that its metadata tell."""
        metadata = span.attributes.get("metadata")
        if not isinstance(metadata, str) or _STEP not in metadata:
            return super().chain_role(span)
        if f'"langgraph_node": "{span.name}"' in metadata or f'"langgraph_node":"{span.name}"' in metadata:
            return "iteration"
        return "other" if is_plumbing(span.name) else "workflow"

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span. A tool's answer may say itself that the tool failed."""
        return outcome_of(span, failed=_answers_error(span.attributes))

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed. Its id stands in the message that it answered with."""
        call = super().tool_call(span)
        if call.call_id is None and isinstance(call.result, str) and '"tool_call_id"' in call.result:
            return replace(call, call_id=call_id(_message(call.result).get("tool_call_id")))
        return call

    def response_id(self, span: Span) -> str | None:
        """Return the id that the answer's metadata hold."""
        answer = span.attributes.get(values.OUTPUT)
        start = answer.find(_METADATA) if isinstance(answer, str) else -1
        return values.response_id_in(answer, start) if start >= 0 else None


def _answers_error(attributes: Mapping[str, Any]) -> bool:
    if attributes.get(KIND) != "TOOL":
        return False
    answer = attributes.get(values.OUTPUT)
    if not isinstance(answer, str) or '"error"' not in answer:
        return False
    return _message(answer).get("status") == "error"


def _message(answer: str) -> Mapping[str, Any]:
    """Return the fields of the message that a tool answered with."""
    found = parsed_object(answer)
    data = found.get("data")
    return data if isinstance(data, Mapping) and found.get("type") == "tool" else {}
