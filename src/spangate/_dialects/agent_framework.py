"""Microsoft Agent Framework: GenAI names; workflows have spans of their own, named after what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spangate._dialects._roles import OPERATION_ROLES
from spangate._dialects.genai import GenAI
from spangate._records import Role


class AgentFramework(GenAI):
    """Finish reasons come as JSON in a text and an unknown call id as ``unknown``; the readers below take both."""

    name: ClassVar[str] = "agent_framework"
    scopes: ClassVar[Mapping[str, Role]] = {"agent_framework": "workflow"}
    marks: ClassVar[tuple[str, ...]] = ()
    names: ClassVar[Mapping[str, Role]] = {
        **OPERATION_ROLES,
        "workflow.run": "workflow",
        "workflow.build": "setup",
        "executor.process": "other",
        "edge_group.process": "other",
        "message.send": "transport",
    }
