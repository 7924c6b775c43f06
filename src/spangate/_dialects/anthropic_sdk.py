"""The spans that the Anthropic SDK writes by itself: GenAI names, one span a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from spangate._dialects.genai import GenAI
from spangate._records import Role, Span

_NO_CALLS: Final = ("count_tokens", ".batches", ".models", ".files")


class AnthropicSdk(GenAI):
    """Every request of this scope is a model call, but for the few endpoints that ask no model."""

    name: ClassVar[str] = "anthropic_sdk"
    scopes: ClassVar[Mapping[str, Role]] = {"com.anthropic.sdk.python": "generation"}
    marks: ClassVar[tuple[str, ...]] = ()

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without an operation is, by its name."""
        return "other" if any(part in span.name for part in _NO_CALLS) else "generation"

    def answered(self, span: Span) -> bool:
        """Say whether the model gave a reason why it stopped."""
        return "anthropic.message.stop_reason" in span.attributes or super().answered(span)
