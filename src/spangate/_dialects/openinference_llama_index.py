"""OpenInference on LlamaIndex: spans are named ``Class.method``, and one model call has up to three of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import ToolCall
from spangate._dialects._outcome import outcome_of
from spangate._dialects._values import parsed_object
from spangate._dialects.openinference import KIND, OpenInference
from spangate._records import Outcome, Role, Span

_HELPERS: Final = ("_prepare", "get_tool_calls_from_response", "_parse")
_CALLS: Final = ("chat", "complete", "predict", "chat_with_tools")
_STEPS: Final = frozenset({"run_agent_step", "take_step", "_run_step", "_arun_step", "run_step", "arun_step"})
_WORKER: Final = "BaseWorkflowAgent."
_FAILED: Final = ('"is_error":true', '"is_error": true')


class OpenInferenceLlamaIndex(OpenInference):
    """Helpers around a model call have its kind; the steps of an agent's event loop have that of a chain."""

    name: ClassVar[str] = "openinference_llama_index"
    scopes: ClassVar[Mapping[str, Role]] = {"openinference.instrumentation.llama_index": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:
        """Say what the span is. A helper that only prepares a call is no model call."""
        role = super().role(span)
        return "other" if role == "generation" and _method(span.name).startswith(_HELPERS) else role

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is, by class and method: the kind comes at the end."""
        method = _method(span.name)
        if method.startswith(_HELPERS):
            return "other"
        if method.endswith(_CALLS):
            return "generation"
        if method in ("call", "acall") and "Tool" in span.name:
            return "tool"
        role = super().unsaid_role(span)
        return self.chain_role(span) if role == "workflow" else role

    def chain_role(self, span: Span) -> Role:
        """Say what a chain is: a step that asks the model is an iteration, the other steps are plumbing."""
        if _method(span.name) in _STEPS:
            return "iteration"
        return "other" if span.name.startswith(_WORKER) else super().chain_role(span)

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span. A tool's output may say that it is an error."""
        attributes = span.attributes
        answer = attributes.get(values.OUTPUT)
        if not isinstance(answer, str) or attributes.get(KIND) != "TOOL":
            return outcome_of(span)
        marked = any(mark in answer for mark in _FAILED)
        return outcome_of(span, failed=marked and parsed_object(answer).get("is_error") is True)

    def model_name_is_requested(self, span: Span) -> bool:  # noqa: ARG002 - the question is the protocol's
        """Say that ``llm.model_name`` is the request's."""
        return True

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed; its arguments are wrapped."""
        call = super().tool_call(span)
        inner = parsed_object(call.arguments).get("kwargs")
        return replace(call, arguments=inner) if isinstance(inner, Mapping) else call


def _method(name: str) -> str:
    return name.rpartition(".")[2]
