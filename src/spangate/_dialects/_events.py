"""Messages that were recorded as span events instead of attributes: one event a message, or one for the whole call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from spangate._dialects._values import OBJECT, parsed, parsed_object
from spangate._records import ABSENT, Event

_DETAILS: Final = "gen_ai.client.inference.operation.details"
_CHOICE: Final = "gen_ai.choice"
_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
BODY: Final = "gen_ai.event.content"
"""Where the body of an event that was a log record stands, as JSON."""
MESSAGE_EVENTS: Final = frozenset({_DETAILS, _CHOICE, *_ROLES})
"""The names of all of them."""
MESSAGE_KEYS: Final = frozenset({"content", "message", "tool_calls", "arguments", BODY})
"""What of a message stands under a name of its own in its event. Only there do these names mean that."""


class Told(NamedTuple):
    """What events say of a model call: lists of messages, or the texts that hold them; ``ABSENT`` where nothing."""

    sent: Any = ABSENT
    answer: Any = ABSENT
    system: Any = ABSENT
    definitions: Any = ABSENT


NOTHING: Final = Told()


def told_by(events: Iterable[Event]) -> Told:
    """Gather what ``events`` say. System text that has an event of its own is the first of the messages."""
    sent: list[Any] = []
    answer: list[Any] = []
    details: dict[str, Any] = {}
    for event in events:
        if event.name == _DETAILS:
            details.update(event.attributes)
        elif event.name == _CHOICE:
            answer.append(_choice(event.attributes))
        elif event.name in _ROLES:
            sent.append(_message(_ROLES[event.name], event.attributes))
    if not sent and not answer and not details:
        return NOTHING
    return Told(
        sent or details.get("gen_ai.input.messages", ABSENT),
        answer or details.get("gen_ai.output.messages", ABSENT),
        details.get("gen_ai.system_instructions", ABSENT),
        details.get("gen_ai.tool.definitions", ABSENT),
    )


def tell_answer(events: Iterable[Event]) -> bool:
    """Tell whether one of ``events`` holds a completion."""
    return any(
        event.name == _CHOICE or (event.name == _DETAILS and bool(event.attributes.get("gen_ai.output.messages")))
        for event in events
    )


def _message(role: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    body = parsed_object(attributes[BODY]) if BODY in attributes else attributes
    message = {**body, "role": role, "content": _content(body.get("content"))}
    if role == "tool" and "id" in body:
        message["tool_call_id"] = body["id"]
    return message


def _choice(attributes: Mapping[str, Any]) -> dict[str, Any]:
    body = parsed_object(attributes[BODY]) if BODY in attributes else attributes
    message = _content(body.get("message"))
    return dict(message) if isinstance(message, OBJECT) else {"content": message}


def _content(value: Any) -> Any:
    """Return the blocks that a text holds as JSON, else the text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        blocks = parsed(value)
        return value if blocks is ABSENT else blocks
    return value
