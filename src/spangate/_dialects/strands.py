"""Strands Agents: GenAI names, messages in span events, the failure of a tool in an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._outcome import outcome_of
from spangate._dialects.genai import GenAI
from spangate._records import ABSENT, Outcome, Role, Span

_STATUS: Final = "gen_ai.tool.status"
_CANCELLED: Final = "strands.cancellation.type"


class Strands(GenAI):
    """Arguments and result of a tool are events, unless the experimental conventions are on."""

    name: ClassVar[str] = "strands"
    scopes: ClassVar[Mapping[str, Role]] = {"strands.telemetry.tracer": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    payload_keys: ClassVar[frozenset[str]] = GenAI.payload_keys | {"content", "message", "tool.result"}

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span. An agent that was cancelled ends without a status."""
        found = outcome_of(span, failed=span.attributes.get(_STATUS) == "error")
        return "cancelled" if found == "ok" and _CANCELLED in span.attributes else found

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""
        call = super().tool_call(span)
        if call.result is ABSENT or call.arguments is ABSENT:
            arguments, result = _told(span)
            if call.arguments is not ABSENT:
                arguments = call.arguments
            return replace(call, arguments=arguments, result=result if call.result is ABSENT else call.result)
        return call


def _told(span: Span) -> tuple[Any, Any]:
    """Return the arguments and the result that the events of a tool span hold."""
    arguments: Any = ABSENT
    result: Any = ABSENT
    for event in span.events:
        if event.name == "gen_ai.tool.message":
            arguments = event.attributes.get("content", ABSENT)
        elif event.name == "gen_ai.choice":
            result = event.attributes.get("message", ABSENT)
    return arguments, result
