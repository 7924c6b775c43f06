"""OpenLLMetry on LangChain and LangGraph: the graph is told in association properties, calls are wrapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._langgraph import is_plumbing
from spangate._dialects._outcome import outcome_of
from spangate._dialects._values import call_id, parsed_object
from spangate._dialects.genai import OPERATION
from spangate._dialects.traceloop import KIND, Traceloop
from spangate._records import Outcome, Role, Span

_NODE: Final = "traceloop.association.properties.langgraph_node"
_ENTITY: Final = "traceloop.entity.name"
_STATUS: Final = "gen_ai.task.status"


class TraceloopLangChain(Traceloop):
    """A node of a graph is one step of its loop. Hooks of middleware are tasks without a kind."""

    name: ClassVar[str] = "traceloop_langchain"
    scopes: ClassVar[Mapping[str, Role]] = {"opentelemetry.instrumentation.langchain": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:
        """Say what the span is."""
        attributes = span.attributes
        if attributes.get(OPERATION) == "execute_task" and KIND not in attributes:
            return "other"
        return super().role(span)

    def task_role(self, span: Span) -> Role:
        """Say what a task is, by the place in the graph that its properties tell."""
        attributes = span.attributes
        node = attributes.get(_NODE)
        if node is None:
            return "workflow"
        if node == attributes.get(_ENTITY):
            return "iteration"
        return "other" if is_plumbing(span.name.removesuffix(".task")) else "workflow"

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span."""
        return outcome_of(span, failed=span.attributes.get(_STATUS) == "failure")

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed, unwrapped from what the framework passes along with it."""
        call = super().tool_call(span)
        wrapped = parsed_object(call.arguments)
        inner, passed = wrapped.get("inputs"), wrapped.get("kwargs")
        if isinstance(inner, Mapping):
            call = replace(call, arguments=inner)
        if call.call_id is None and isinstance(passed, Mapping):
            call = replace(call, call_id=call_id(passed.get("tool_call_id")))
        return call
