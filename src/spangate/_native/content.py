"""What a program hands over of messages and calls, as the GenAI conventions write them, and the hashes over it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from spangate._canonical import canonical_hash, text_hash
from spangate._redaction import MAX_DEPTH

Messages: TypeAlias = "str | Sequence[Any]"


def digest(value: Any) -> str | None:
    """Return the hash of a value, of a text as it stands; None for what is absent or no JSON, which has none."""
    if value is None:
        return None
    if isinstance(value, str):
        return text_hash(value)
    try:
        return canonical_hash(value)
    except (TypeError, ValueError, RecursionError):
        return None


def plain(value: Any, around: frozenset[int] = frozenset()) -> Any:
    """Return a value as JSON has it, where it is made of mappings, lists and a client's own objects (pydantic).

    ``around`` are the identities of what it is inside of: what holds itself, or is too deep, is left as it is.
    """
    if isinstance(value, (str, int, float)) or value is None or id(value) in around or len(around) == MAX_DEPTH:
        return value
    inside = around | {id(value)}
    if isinstance(value, Mapping):
        return {key: plain(inner, inside) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner, inside) for inner in value]
    try:
        return value.model_dump(exclude_none=True)
    except (AttributeError, TypeError, ValueError):  # not such an object after all
        return value


def written(value: Any) -> str:
    """Write a value as text: JSON, with whatever is none as its own text."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, a circle
        return repr(value)


def attribute(value: Any) -> Any:
    """Return a value as an attribute can hold it: what is neither plain nor a list of such is written as text."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return value if all(isinstance(item, (str, int, float)) for item in items) else written(value)


def messages_of(messages: Messages) -> list[dict[str, Any]]:
    """Return messages with their parts: a text is one of the user, those with ``content`` are chat messages."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return [_message(message) if isinstance(message, Mapping) else {"content": message} for message in messages]


def answer_of(text: str | None, calls: Sequence[Any], finish_reason: str | None) -> list[dict[str, Any]]:
    """Return the message that a model answered with."""
    message = _message({"role": "assistant", "content": text, "tool_calls": calls})
    return [message if finish_reason is None else {**message, "finish_reason": finish_reason}]


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    if "parts" in message:
        return dict(message)
    content = message.get("content")
    if message.get("role") == "tool":
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}]
    else:
        parts = [*_content_parts(content), *_call_parts(message.get("tool_calls") or ())]
    return {"role": message.get("role", "user"), "parts": parts}


def _content_parts(content: Any) -> Iterator[Any]:
    for block in content if isinstance(content, (list, tuple)) else () if content is None else (content,):
        is_text = isinstance(block, Mapping) and isinstance(block.get("text"), str)
        if isinstance(block, str) or is_text:
            yield {"type": "text", "content": block if isinstance(block, str) else block["text"]}
        else:
            yield block


def _call_parts(calls: Iterable[Any]) -> Iterator[Any]:
    for call in calls:
        if not isinstance(call, Mapping):
            yield call
            continue
        function = call.get("function")
        asked = function if isinstance(function, Mapping) else call
        yield {
            "type": "tool_call",
            "id": call.get("id"),
            "name": asked.get("name"),
            "arguments": asked.get("arguments"),
        }
