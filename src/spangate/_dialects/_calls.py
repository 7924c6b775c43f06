"""Calls and results in the order in which a conversation holds them, and which result answers which call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from spangate._dialects._base import ToolCall

ITEM_ID: Final = "fc_"
"""How the id of a Responses API item starts. Some instrumentations write it where the call id belongs."""


PROVIDER_CALLS: Final = frozenset(
    {
        "server_tool_call",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
    }
)
"""Kinds of calls that the provider runs itself. Where messages are flattened, the kind stands for the name."""
_PROVIDER_IDS: Final = ("srvtoolu_", "mcptoolu_")
"""How ids of such calls start with Anthropic, whatever kind an instrumentation makes of them."""


class Step(NamedTuple):
    """A call that the model asked for, or the result of one."""

    is_result: bool
    call: ToolCall


def runs_at_provider(call_id: str | None, name: str | None) -> bool:
    """Say whether a call whose kind is not recorded runs at the provider, by its name or its id."""
    return name in PROVIDER_CALLS or (call_id is not None and call_id.startswith(_PROVIDER_IDS))


def asked(steps: Iterable[Step]) -> Sequence[ToolCall]:
    """Return the calls among ``steps``."""
    return tuple(step.call for step in steps if not step.is_result)


def received(steps: Iterable[Step]) -> Sequence[ToolCall]:
    """Return the results among ``steps``, each with the name and the arguments of the call that it answers."""
    waiting: dict[str | None, ToolCall] = {}
    results = []
    for is_result, call in steps:
        if is_result:
            results.append(_completed(call, _answered(call, waiting)))
        else:
            waiting[call.call_id] = call
    return tuple(results)


def _answered(result: ToolCall, waiting: dict[str | None, ToolCall]) -> ToolCall | None:
    """Return the call that ``result`` answers. Where a call has the id of its item, the order tells."""
    if result.call_id is None:
        return None
    if result.call_id in waiting:
        return waiting[result.call_id]
    for known in waiting:
        if known is not None and known.startswith(ITEM_ID):
            return waiting.pop(known)
    return None


def _completed(result: ToolCall, call: ToolCall | None) -> ToolCall:
    if call is None:
        return result
    return ToolCall(
        result.call_id,
        result.name or call.name,
        call.arguments,
        result.result,
        at_provider=result.at_provider or call.at_provider,
    )
