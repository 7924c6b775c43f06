"""What LangChain runs between the nodes of a graph and its models and tools, and says in the place of tools."""

from __future__ import annotations

from typing import Any, Final

_PLUMBING: Final = frozenset({"Prompt", "acall_model", "call_model", "should_continue", "tools_condition", "_write"})
_STARTS: Final = ("Runnable", "Channel", "Branch<", "ChatPromptTemplate", "PromptTemplate")
_ENDS: Final = ("OutputParser", "PromptTemplate")
_TAKEN: Final = "Returning structured response: "
_REFUSED: Final = ("Failed to parse structured output for tool '", "Model incorrectly returned multiple structured")
_MAX_START: Final = 256


def is_plumbing(name: str) -> bool:
    """Tell whether a chain of this name runs on behalf of the node above it."""
    return name in _PLUMBING or name.startswith(_STARTS) or name.endswith(_ENDS)


def is_structured_answer(result: Any) -> bool:
    """Tell whether what a model was told as a tool's result says that its answer came, or has to come again.

    With the tool strategy for structured output the model answers by a call that is named after the schema. No tool
    runs, and no span shows it; that the framework's own words are the result is all that tells. A program may choose
    other words.
    """
    if not isinstance(result, str):
        return False
    start = result[:_MAX_START]
    return start.startswith(_TAKEN) or any(words in start for words in _REFUSED)
