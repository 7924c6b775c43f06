"""OpenLLMetry on the OpenAI Agents SDK: parameters of the Responses API are copied from the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from spangate._dialects._base import Request
from spangate._dialects.traceloop import Traceloop
from spangate._records import ABSENT, Role, Span


class TraceloopOpenAIAgents(Traceloop):
    """Temperature and parameters are the answer's where they are recorded at all: what was asked for is unknown."""

    name: ClassVar[str] = "traceloop_openai_agents"
    scopes: ClassVar[Mapping[str, Role]] = {"opentelemetry.instrumentation.openai_agents": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()

    def request(self, span: Span) -> Request:
        """Return what a generation asked for."""
        return replace(super().request(span), temperature=ABSENT, params={})
