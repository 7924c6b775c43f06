"""pydantic-ai's own spans, instrumentation formats 2 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Final

from spangate._dialects._base import NO_USAGE, TokenCounts, Turn
from spangate._dialects._definitions import offered_in
from spangate._dialects._genai_values import usage_of
from spangate._dialects._roles import OPERATION_ROLES
from spangate._dialects._values import OBJECT, parsed
from spangate._dialects.genai import GenAI
from spangate._records import Outcome, Role, Span

_USAGE: Final = "gen_ai.usage."
_ROLL_UP: Final = "gen_ai.aggregated_usage."
_RETRIES: Final = ("pydantic_ai.tool.retry.cause", "pydantic_ai.output.retry.cause")


class PydanticAI(GenAI):
    """Totals of an agent have names of their own, and a retry asked of the model looks like a failed tool."""

    name: ClassVar[str] = "pydantic_ai"
    scopes: ClassVar[Mapping[str, Role]] = {"pydantic-ai": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[Mapping[str, Role]] = {
        **OPERATION_ROLES,
        "agent run": "agent",
        "running tool": "tool",
        "running output function": "tool",
        "running": "other",  # "running 3 tools" holds the spans of those three
    }
    payload_keys: ClassVar[frozenset[str]] = GenAI.payload_keys | {
        "final_result",
        "all_messages",
        "all_messages_events",
        "events",
        "pydantic_ai.all_messages",
        "model_request_parameters",
    }

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span. A call that the model is asked to make again did not fail."""
        found = super().outcome(span)
        if found == "error" and any(key in span.attributes for key in _RETRIES):
            return "control_flow"
        return found

    def turn(self, span: Span) -> Turn:
        """Return the tool traffic. The tools that carry an agent's answer are asked for, but none of them runs."""
        found = super().turn(span)
        parameters = span.attributes.get("model_request_parameters")
        if found.offered is None or not isinstance(parameters, str):
            return found
        return replace(found, offered=found.offered - _answer_tools(parameters))

    def usage(self, span: Span) -> TokenCounts:
        """Return the token counts of a model call, or the totals of an agent."""
        found = super().usage(span)
        if found is not NO_USAGE:
            return found
        totals = {
            _USAGE + key[len(_ROLL_UP) :]: value for key, value in span.attributes.items() if key.startswith(_ROLL_UP)
        }
        return usage_of(totals)


@lru_cache(maxsize=64)
def _answer_tools(parameters: str) -> frozenset[str]:
    """Return the names of the tools that carry the answer; the parameters of an agent's requests hardly ever change."""
    found = parsed(parameters) if '"output_tools"' in parameters else None
    tools = found.get("output_tools") if isinstance(found, OBJECT) else None
    return offered_in(tools) or frozenset()
