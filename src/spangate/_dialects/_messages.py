"""Tool calls and results in recorded messages, whatever the shape: parts, chat messages, or the blocks of a vendor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._calls import PROVIDER_CALLS, Step, asked, received, runs_at_provider
from spangate._dialects._values import OBJECT, call_id, first, parsed, text

_CALLS: Final = frozenset({"tool_call", "tool_use", "function_call", "function", "custom_tool_call"})
_RESULTS: Final = frozenset({"tool_call_response", "tool_result", "function_call_output", "custom_tool_call_output"})
_PROVIDER_RESULTS: Final = ("server_tool_call_response", "_tool_result")
_NESTED_CALLS: Final = ("toolUse", "function_call", "functionCall")
_NESTED_RESULTS: Final = ("toolResult", "function_response", "functionResponse")
_LISTS: Final = ("content", "contents", "tool_calls")
_CALL_IDS: Final = ("call_id", "id", "tool_call_id", "tool_use_id", "toolUseId")
"""Where the id of a call stands. A Responses item has an id of its own beside ``call_id``, so that one wins."""
_RESULT_IDS: Final = ("toolUseId", "tool_use_id", "tool_call_id", "call_id", "id")
"""Where a result points to its call. Its own ``id`` may be the message's: what points to the call wins."""
_ARGUMENTS: Final = ("arguments", "args", "input")
_OUTCOMES: Final = ("response", "result", "output", "content")


def asked_in(recorded: Any) -> Sequence[ToolCall] | None:
    """Return the calls that recorded output asks for; None if it cannot be read."""
    if _holds_no_calls(recorded):
        return ()
    messages = parsed(recorded)
    return asked(steps_in(messages)) if isinstance(messages, (list, *OBJECT)) else None


def received_in(recorded: Any) -> Sequence[ToolCall] | None:
    """Return the results that recorded input holds, named after their calls; None if it cannot be read."""
    if _holds_no_calls(recorded):
        return ()
    messages = parsed(recorded)
    return received(steps_in(messages)) if isinstance(messages, (list, *OBJECT)) else None


def _holds_no_calls(recorded: Any) -> bool:
    """Tell without parsing that a whole text holds neither a call nor a result."""
    if not isinstance(recorded, str) or recorded[:1] + recorded[-1:] not in ("[]", "{}"):
        return False
    return "tool" not in recorded and "function" not in recorded and "_call" not in recorded


def steps_in(messages: Any) -> Iterator[Step]:
    """Yield calls and results in their order. ``messages`` is a message, a block, or a list of either."""
    for message in messages if isinstance(messages, list | tuple) else (messages,):
        if not isinstance(message, OBJECT):
            continue
        parts = message.get("parts")
        if isinstance(parts, list | tuple):
            yield from _steps_of(parts)
            continue
        step = _step(message)
        if step is not None:
            yield step
        else:
            for key in _LISTS:
                blocks = message.get(key)
                if isinstance(blocks, list | tuple):
                    yield from _steps_of(blocks)


def _steps_of(blocks: Iterable[Any]) -> Iterator[Step]:
    for block in blocks:
        step = _step(block) if isinstance(block, OBJECT) else None
        if step is not None:
            yield step


def _step(block: Mapping[str, Any]) -> Step | None:
    """Read one block, or one whole message, that is a call or a result."""
    kind = block.get("type")
    if isinstance(kind, str):
        if kind in _CALLS or kind in PROVIDER_CALLS:
            return Step(is_result=False, call=_call(block, at_provider=kind in PROVIDER_CALLS))
        if kind in _RESULTS:
            return Step(is_result=True, call=_result(block, at_provider=False))
        if kind.endswith(_PROVIDER_RESULTS):
            return Step(is_result=True, call=_result(block, at_provider=True))
        if kind != "tool":
            return None
    if kind == "tool" or block.get("role") == "tool":
        known = call_id(block.get("tool_call_id"))
        return None if known is None else Step(is_result=True, call=_result(block, at_provider=False))
    return _nested(block)


def _nested(block: Mapping[str, Any]) -> Step | None:
    """Read a block whose one key says what it is: ``{"toolUse": {...}}``."""
    for key in _NESTED_CALLS:
        if isinstance(block.get(key), OBJECT):
            return Step(is_result=False, call=_call(block[key], at_provider=False))
    for key in _NESTED_RESULTS:
        if isinstance(block.get(key), OBJECT):
            return Step(is_result=True, call=_result(block[key], at_provider=False))
    if isinstance(block.get("function"), OBJECT):
        return Step(is_result=False, call=_call(block, at_provider=False))
    return None


def _call(block: Mapping[str, Any], *, at_provider: bool) -> ToolCall:
    function = block.get("function")
    inner = function if isinstance(function, OBJECT) else block
    known, name = _id(block, _CALL_IDS), text(inner.get("name"))
    return ToolCall(
        known,
        name,
        arguments=first(inner, _ARGUMENTS),
        at_provider=at_provider or block.get("builtin") is True or runs_at_provider(known, name),
    )


def _result(block: Mapping[str, Any], *, at_provider: bool) -> ToolCall:
    return ToolCall(
        _id(block, _RESULT_IDS),
        text(block.get("name")),
        result=first(block, _OUTCOMES),
        at_provider=at_provider or block.get("builtin") is True,
    )


def _id(block: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        if key in block:
            known = call_id(block[key])
            if known is not None:
                return known
    return None
