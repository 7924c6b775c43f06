"""AutoGen: GenAI names for agents and tools, and the messages of its runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spangate._dialects.genai import GenAI
from spangate._records import Role, Span


class AutoGen(GenAI):
    """Writes no model calls: they are unknown, not none."""

    name: ClassVar[str] = "autogen"
    scopes: ClassVar[Mapping[str, Role]] = {
        "autogen-core": "workflow",
        "autogen SingleThreadedAgentRuntime": "transport",
        "autogen GrpcWorkerAgentRuntime": "transport",
    }
    marks: ClassVar[tuple[str, ...]] = ()

    def role(self, span: Span) -> Role:
        """Say what the span is. What the runtime writes is the transport of messages."""
        return "transport" if span.scope.startswith("autogen ") else super().role(span)
