"""OpenLLMetry on CrewAI: three levels that all say ``invoke_agent``; no tools, no model calls, totals as prose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spangate._dialects.traceloop import KIND, Traceloop
from spangate._records import Role, Span


class TraceloopCrewAI(Traceloop):
    """Only the agent itself is one: the crew is a workflow, and so is a task. Totals in a repr are unknown."""

    name: ClassVar[str] = "traceloop_crewai"
    scopes: ClassVar[Mapping[str, Role]] = {"opentelemetry.instrumentation.crewai": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    payload_keys: ClassVar[frozenset[str]] = Traceloop.payload_keys | {
        "crewai.crew.result",
        "crewai.crew.tasks_output",
        "crewai.crew.agents",
        "crewai.crew.tasks",
        "crewai.agent.backstory",
        "crewai.agent.goal",
        "crewai.agent.tools",
        "crewai.agent.result",
        "crewai.task.context",
        "crewai.task.description",
        "crewai.task.expected_output",
        "crewai.task.output",
        "crewai.task.result",
        "crewai.task.tools",
    }

    def role(self, span: Span) -> Role:
        """Say what the span is."""
        if KIND not in span.attributes and span.name.endswith(".workflow"):
            return "workflow"
        return super().role(span)
