"""OpenInference on smolagents: totals repeat on the agent, tools hide behind ``SimpleTool``, history is plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from spangate._dialects._base import ToolCall, Turn
from spangate._dialects._values import parsed_object
from spangate._dialects.openinference import OpenInference
from spangate._records import Role, Span


class OpenInferenceSmolagents(OpenInference):
    """What a model was told of its tools is text in its messages: which results it received is unknown."""

    name: ClassVar[str] = "openinference_smolagents"
    scopes: ClassVar[Mapping[str, Role]] = {"openinference.instrumentation.smolagents": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is, by its name."""
        name = span.name
        if name.startswith("Step "):
            return "iteration"
        if name.endswith(".run"):
            return "agent"
        if ".generate" in name:
            return "generation"
        return "tool" if name.endswith("Tool") else super().unsaid_role(span)

    def model_name_is_requested(self, span: Span) -> bool:  # noqa: ARG002 - the question is the protocol's
        """Say that ``llm.model_name`` is the request's."""
        return True

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic of a generation."""
        found = super().turn(span)
        return found if found.received else replace(found, received=None)

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed; its arguments are wrapped."""
        call = super().tool_call(span)
        return replace(call, arguments=_unwrapped(call.arguments))


def _unwrapped(recorded: Any) -> Any:
    """Return the keyword arguments where there are no others; positions say no names."""
    found = parsed_object(recorded)
    inner = found.get("kwargs")
    return inner if isinstance(inner, Mapping) and not found.get("args") else recorded
