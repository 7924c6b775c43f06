"""What LangChain runs between the nodes of a graph and its models and tools, known by the names of its classes."""

from __future__ import annotations

from typing import Final

_PLUMBING: Final = frozenset({"Prompt", "acall_model", "call_model", "should_continue", "tools_condition", "_write"})
_STARTS: Final = ("Runnable", "Channel", "Branch<", "ChatPromptTemplate", "PromptTemplate")
_ENDS: Final = ("OutputParser", "PromptTemplate")


def is_plumbing(name: str) -> bool:
    """Tell whether a chain of this name runs on behalf of the node above it."""
    return name in _PLUMBING or name.startswith(_STARTS) or name.endswith(_ENDS)
