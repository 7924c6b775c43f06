"""OpenInference on CrewAI: crews, agents and tools, no model calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spangate._dialects.openinference import OpenInference
from spangate._records import Role, Span


class OpenInferenceCrewAI(OpenInference):
    """Names hold ids; the kind is there from the start."""

    name: ClassVar[str] = "openinference_crewai"
    scopes: ClassVar[Mapping[str, Role]] = {"openinference.instrumentation.crewai": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    payload_keys: ClassVar[frozenset[str]] = OpenInference.payload_keys | {"crew_agents", "crew_tasks", "crew_inputs"}

    def unsaid_role(self, span: Span) -> Role:
        """Say what a span without a kind is, by its name."""
        name = span.name
        if name.endswith("._execute_core"):
            return "agent"
        return "tool" if name.endswith((".run", "._use")) else super().unsaid_role(span)
