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
CYCLE_ID: Final = "event_loop.cycle_id"
PARENT_CYCLE_ID: Final = "event_loop.parent_cycle_id"
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
        if call.arguments is ABSENT:
            return replace(call, arguments=_told(span, "gen_ai.tool.message", "content"))
        return call

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""
        found = super().tool_result(span)
        return found if found is not ABSENT else _told(span, "gen_ai.choice", "message")


def _told(span: Span, event_name: str, key: str) -> Any:
    """Return what the last event of a name holds."""
    found: Any = ABSENT
    for event in span.events:
        if event.name == event_name:
            found = event.attributes.get(key, ABSENT)
    return found
