"""Roles by the names that conventions give to operations, and by scope where a span says nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spangate._records import Role, Span

_MAX_SCOPE: Final = 256

OPERATION_ROLES: Final[Mapping[str, Role]] = {
    "chat": "generation",
    "generate_content": "generation",
    "text_completion": "generation",
    "completion": "generation",
    "responses": "generation",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "invoke_graph": "workflow",
    "invoke_swarm": "workflow",
    "execute_task": "workflow",
    "execute_event_loop_cycle": "iteration",
    "create_agent": "setup",
    "handoff": "other",
    "embeddings": "other",
}
"""What ``gen_ai.operation.name`` says, and the first word of most span names."""


def role_by_name(names: Mapping[str, Role], span: Span) -> Role | None:
    """Return the role that the span's name, or its first word, has in ``names``."""
    name = span.name
    return names.get(name) or names.get(name[:_MAX_SCOPE].partition(" ")[0])


def role_by_key(roles: Mapping[str, Role], key: Any) -> Role | None:
    """Return ``roles[key]`` if ``key`` is a text that is there."""
    return roles.get(key) if isinstance(key, str) else None


def scope_owner(scopes: Mapping[str, Any], scope: str) -> str | None:
    """Return the name in ``scopes`` that ``scope`` is or stands below, dot by dot; the longest of several."""
    if len(scope) > _MAX_SCOPE:
        return None
    while scope:
        if scope in scopes:
            return scope
        scope = scope.rpartition(".")[0]
    return None


def role_by_scope(scopes: Mapping[str, Role], span: Span) -> Role:
    """Return the role of a span that does not say what it is.

    A scope that only calls models has it for all its spans. Of a framework's, those that are still open or hold no
    attributes may yet become part of a run; one that ended and says nothing is none of them.
    """
    owner = scope_owner(scopes, span.scope)
    if owner is None:
        return "other"
    role = scopes[owner]
    return role if role == "generation" or span.end_ns is None or not span.attributes else "other"
