"""The words of two more APIs for the model server: OpenAI's responses and Anthropic's messages.

Each is made of the same answers as the chat completions: a plain body, or the events of a stream with their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.model_server import Reply

Events = Iterator[tuple[str, dict[str, Any]]]


def response_body(reply: Reply, status: str = "completed") -> dict[str, Any]:
    """Return the answer as OpenAI's responses API does."""
    usage = reply.answer.usage
    return {
        "id": f"resp-{reply.model}-{reply.number}",
        "object": "response",
        "created_at": reply.created,
        "model": f"{reply.model}-2026",
        "status": status,
        "output": list(_output(reply)) if status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **({} if usage is None or status != "completed" else {"usage": usage.response_body()}),
    }


def _output(reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.answer.text:
        said = {"type": "output_text", "text": reply.answer.text, "annotations": []}
        head = {"id": f"msg-{reply.model}-{reply.number}", "type": "message", "role": "assistant"}
        yield {**head, "status": "completed", "content": [said]}
    for wanted in reply.tool_calls():
        item = {"id": f"fc-{wanted['id']}", "type": "function_call", "call_id": wanted["id"], "status": "completed"}
        yield {**item, **wanted["function"]}


def response_events(reply: Reply) -> Events:
    """Return the answer as the events of a stream of OpenAI's responses API."""
    events = _response_events(reply)
    yield from ((name, {"type": name, "sequence_number": number, **data}) for number, (name, data) in enumerate(events))


def _response_events(reply: Reply) -> Events:
    yield "response.created", {"response": response_body(reply, "in_progress")}
    for place, item in enumerate(_output(reply)):
        at = {"output_index": place, "item_id": item["id"]}
        yield "response.output_item.added", {"output_index": place, "item": {**item, "status": "in_progress"}}
        for part in item.get("content", ()):
            for word in part["text"].split():
                yield "response.output_text.delta", {**at, "content_index": 0, "delta": word + " ", "logprobs": []}
        yield "response.output_item.done", {"output_index": place, "item": item}
    yield "response.completed", {"response": response_body(reply)}


def message_body(reply: Reply) -> dict[str, Any]:
    """Return the answer as Anthropic's messages API does."""
    usage = reply.answer.usage
    tokens = (0, 0) if usage is None else usage[:2]
    return {
        "id": f"msg-{reply.model}-{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": f"{reply.model}-2026",
        "content": list(_blocks(reply)),
        "stop_reason": "tool_use" if reply.answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
    }


def _blocks(reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.answer.text:
        yield {"type": "text", "text": reply.answer.text}
    for wanted in reply.tool_calls():
        function = wanted["function"]
        yield {
            "type": "tool_use",
            "id": wanted["id"],
            "name": function["name"],
            "input": json.loads(function["arguments"]),
        }


def message_events(reply: Reply) -> Events:
    """Return the answer as the events of a stream of Anthropic's messages API."""
    yield from ((name, {"type": name, **data}) for name, data in _message_events(reply))


def _message_events(reply: Reply) -> Events:
    whole = message_body(reply)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield "message_start", {"message": begun}
    for place, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        yield "content_block_start", {"index": place, "content_block": {**block, **_empty(is_text=is_text)}}
        for word in block["text"].split() if is_text else ():
            yield "content_block_delta", {"index": place, "delta": {"type": "text_delta", "text": word + " "}}
        if not is_text:
            written = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_delta", {"index": place, "delta": written}
        yield "content_block_stop", {"index": place}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield "message_stop", {}


def _empty(*, is_text: bool) -> dict[str, Any]:
    return {"text": ""} if is_text else {"input": {}}
