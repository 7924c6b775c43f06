"""What a program hands over of messages and calls, as the GenAI conventions write them, and the hashes over it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from spangate._canonical import canonical_hash, text_hash

Messages: TypeAlias = "str | Sequence[Mapping[str, Any]]"


def digest(value: Any) -> str | None:
    """Return the hash of a value, of a text as it stands; None for what is absent or no JSON: it has none."""
    if value is None:
        return None
    if isinstance(value, str):
        return text_hash(value)
    try:
        return canonical_hash(value)
    except (TypeError, ValueError, RecursionError):
        return None


def written(value: Any) -> str:
    """Write a value as text: JSON, with whatever is none as its own text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def messages_of(messages: Messages) -> list[dict[str, Any]]:
    """Return messages with their parts: a text is one of the user, those with ``content`` are chat messages."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return [_message(message) for message in messages]


def answer_of(text: str | None, calls: Sequence[Mapping[str, Any]], finish_reason: str | None) -> list[dict[str, Any]]:
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
    for block in [content] if isinstance(content, str) else content or ():
        is_text = isinstance(block, Mapping) and isinstance(block.get("text"), str)
        if isinstance(block, str) or is_text:
            yield {"type": "text", "content": block if isinstance(block, str) else block["text"]}
        else:
            yield block


def _call_parts(calls: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for call in calls:
        asked = call.get("function", call)
        yield {
            "type": "tool_call",
            "id": call.get("id"),
            "name": asked.get("name"),
            "arguments": asked.get("arguments"),
        }
