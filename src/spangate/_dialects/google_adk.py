"""Google's Agent Development Kit: GenAI names, and spans that stand for no tool of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._roles import OPERATION_ROLES
from spangate._dialects._values import first
from spangate._dialects.genai import ARGUMENTS, RESULT, TOOL_NAME, GenAI
from spangate._records import ABSENT, Role, Span

_MERGED: Final = "(merged tools)"
_ARGUMENTS: Final = ("gcp.vertex.agent.tool_call_args",)
_RESULT: Final = ("gcp.vertex.agent.tool_response",)


class GoogleAdk(GenAI):
    """After parallel calls one more span merges their answers: it is no tool, and its call id is made up."""

    name: ClassVar[str] = "google_adk"
    scopes: ClassVar[Mapping[str, Role]] = {"gcp.vertex.agent": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[Mapping[str, Role]] = {
        **OPERATION_ROLES,
        "invocation": "workflow",
        "agent_run": "agent",
        "call_llm": "generation",
        "send_data": "transport",
        "execute_tool (merged)": "other",
    }
    payload_keys: ClassVar[frozenset[str]] = GenAI.payload_keys | {
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_call_args",
        "gcp.vertex.agent.tool_response",
        "gcp.vertex.agent.data",
    }

    def role(self, span: Span) -> Role:
        """Say what the span is."""
        role = super().role(span)
        return "other" if role == "tool" and span.attributes.get(TOOL_NAME) == _MERGED else role

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""
        call = super().tool_call(span)
        return call if _is_told(span) else replace(call, arguments=first(span.attributes, _ARGUMENTS))

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""
        return super().tool_result(span) if _is_told(span) else first(span.attributes, _RESULT)


def _is_told(span: Span) -> bool:
    """Say whether arguments or result stand under the names of the conventions."""
    return first(span.attributes, (*ARGUMENTS, *RESULT)) is not ABSENT
