"""Spans of everything else: HTTP, databases, the application itself. They have an outcome and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from spangate._dialects._base import NO_USAGE, Request, TokenCounts, ToolCall, Turn
from spangate._dialects._outcome import outcome_of
from spangate._records import ABSENT, Outcome, Role, Span


class Plain:
    """No convention of agents."""

    name: ClassVar[str] = "plain"
    scopes: ClassVar[Mapping[str, Role]] = {}
    marks: ClassVar[tuple[str, ...]] = ()
    payload_keys: ClassVar[frozenset[str]] = frozenset()
    payload_prefixes: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:  # noqa: ARG002 - the questions are the protocol's
        """Say that the span is none that makes a run."""
        return "other"

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span."""
        return outcome_of(span)

    def usage(self, span: Span) -> TokenCounts:  # noqa: ARG002
        """Say that no tokens are recorded."""
        return NO_USAGE

    def request(self, span: Span) -> Request:  # noqa: ARG002
        """Say that nothing is known to have been asked for."""
        return Request()

    def response_id(self, span: Span) -> str | None:  # noqa: ARG002
        """Say that no answer is known."""
        return None

    def turn(self, span: Span) -> Turn:  # noqa: ARG002
        """Say that no messages are recorded."""
        return Turn()

    def tool_call(self, span: Span) -> ToolCall:  # noqa: ARG002
        """Say that no call is recorded."""
        return ToolCall()

    def tool_result(self, span: Span) -> Any:  # noqa: ARG002
        """Say that no result is recorded."""
        return ABSENT

    def answered(self, span: Span) -> bool:  # noqa: ARG002
        """Say that no completion is recorded."""
        return False
