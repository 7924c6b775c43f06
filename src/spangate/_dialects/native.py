"""The spans of a native run: ``agent.run``, ``agent.iter``, ``agent.llm``, ``agent.tool``, ``agent.halt``.

An attribute may be written by its own name or below ``agent.``; usage, requests and messages use GenAI names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from spangate._dialects._base import NO_USAGE, Request, TokenCounts, ToolCall
from spangate._dialects._outcome import outcome_of
from spangate._dialects._values import first, text
from spangate._dialects.genai import OPERATION, GenAI
from spangate._dialects.process import EXECUTABLE, EXIT_CODE
from spangate._records import ABSENT, Event, Outcome, Role, Span

HALT: Final = "agent.halt"
"""The span by which a loop says why it halted."""
ROLES: Final[Mapping[str, Role]] = {
    "agent.run": "agent",
    "agent.iter": "iteration",
    "agent.llm": "generation",
    "agent.tool": "tool",
    HALT: "other",
}
HALT_REASONS: Final = frozenset(
    {"done", "budget_exhausted", "tool_error", "span_open", "schema_drift", "timeout", "cancelled"}
)
"""Why a loop may halt. Any other reason is recorded as ``UNKNOWN``."""
UNKNOWN: Final = "unknown"
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "agent.run": ("run_id", "goal_hash", "max_iters"),
    "agent.iter": ("iteration", "budget_remaining", "work_id"),
    "agent.llm": ("input_hash", "output_hash"),
    "agent.tool": ("schema_hash", "error_class", "attempt"),
    HALT: ("halt_reason", "last_iteration", "span_still_open"),
}


def native(attributes: Mapping[str, Any], field: str) -> Any:
    """Return a native attribute, by its own name or below ``agent.``; ``ABSENT`` if it was not recorded."""
    return first(attributes, (f"agent.{field}", field))


def is_native(span: Span) -> bool:
    """Tell whether a span of a scope that nobody knows is one of these, by its name and what it holds."""
    fields = _FIELDS.get(span.name)
    if fields is None:
        return False
    attributes = span.attributes
    return any(native(attributes, field) is not ABSENT for field in fields)


class Native(GenAI):
    """Names say what a span is; a span of ours that changes files is a tool."""

    name: ClassVar[str] = "native"
    scopes: ClassVar[Mapping[str, Role]] = {"spangate": "other"}
    marks: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:
        """Say what the span is."""
        role = ROLES.get(span.name)
        if role is not None:
            return role
        attributes = span.attributes
        if EXECUTABLE in attributes or EXIT_CODE in attributes:
            return "process"
        if OPERATION in attributes:
            return super().role(span)
        return "tool" if "op" in attributes and ("path" in attributes or "outputs" in attributes) else "other"

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span. A tool says itself whether it was ok, and if not, what it raised."""
        attributes = span.attributes
        if native(attributes, "ok") is not False:
            return outcome_of(span)
        raised = native(attributes, "error_class")
        if not isinstance(raised, str):
            return outcome_of(span, failed=True)
        return outcome_of(replace(span, events=(*span.events, Event("exception", {"exception.type": raised}))))

    def usage(self, span: Span) -> TokenCounts:
        """Return the token counts on this very span."""
        found = super().usage(span)
        if found is not NO_USAGE:
            return found
        counted_in = native(span.attributes, "input_tokens")
        counted_out = native(span.attributes, "output_tokens")
        return NO_USAGE if counted_in is counted_out is ABSENT else TokenCounts(counted_in, counted_out)

    def request(self, span: Span) -> Request:
        """Return what a generation asked for."""
        found = super().request(span)
        return found if found.model is not ABSENT else replace(found, model=native(span.attributes, "model"))

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""
        call = super().tool_call(span)
        return call if call.name is not None else replace(call, name=text(native(span.attributes, "tool")))
