"""What a prompt is: a system text and what the user said, out of the messages of a request as they were recorded.

* A prompt of at most one system text and one user text is these two texts, however the messages hold them; a system
  text that is not there is ``""``.
* Any other prompt is its whole message list as it was recorded, under ``user``; ``system`` is what is recorded apart
  from the messages.
* Messages whose words were held back are no prompt: two of them look alike whatever was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spangate._dialects._base import Request
from spangate._dialects._values import OBJECT
from spangate._records import ABSENT

_TEXT_TYPES: Final = ("text", "input_text")
_WORDS: Final = ("content", "parts", "text")
_SPEAKERS: Final = ("user", "system")
_DEPTH: Final = 4
"""How deep words lie at most: messages, message, parts, part."""

_REDACTED: Final = "__REDACTED__"
"""What OpenInference writes in place of a text that it was told to hide."""


def prompt_of(request: Request) -> dict[str, Any] | None:
    """Return the prompt as ``{"system", "user"}``, None if it was not recorded or is empty."""
    messages, system = request.messages, request.system
    if messages is ABSENT or messages is None or _is_withheld(messages) or _is_withheld(system):
        return None
    system = "" if system is ABSENT or system is None else _one_text(system, system)
    user = messages
    if isinstance(messages, (list, tuple)):
        match [_said(message) for message in messages]:
            case [("user", str(text))]:
                user = text
            case [("system", str(first)), ("user", str(text))] if system == "":
                system, user = first, text
    return {"system": system, "user": user} if user or system else None


def _said(message: Any) -> tuple[Any, str | None]:
    """Return the role of a message and its text, None if it holds anything but one text."""
    if not isinstance(message, Mapping):
        return None, None
    held = [key for key, value in message.items() if key != "role" and value is not None]
    return message.get("role"), _one_text(message[held[0]], None) if held in (["content"], ["parts"]) else None


def _one_text(value: Any, otherwise: Any) -> Any:
    """Return a text, also out of a list that holds it as its one part; else ``otherwise``."""
    if isinstance(value, str):
        return value
    match value:
        case [Mapping() as part] if part.keys() <= {"type", "text", "content"}:
            texts = [part[key] for key in ("text", "content") if key in part]
            if part.get("type", "text") in _TEXT_TYPES and len(texts) == 1 and isinstance(texts[0], str):
                return texts[0]
    return otherwise


def _is_withheld(value: Any, depth: int = 0) -> bool:
    """Say whether words are missing: a text part without its text, a message that says nothing, a mark in its place."""
    if isinstance(value, str):
        return value == _REDACTED
    if depth > _DEPTH:
        return False
    if isinstance(value, (list, tuple)):
        return any(_is_withheld(item, depth + 1) for item in value)
    if not isinstance(value, OBJECT):
        return False
    says_nothing = True
    for key in _WORDS:
        said = value.get(key)
        if said is not None:
            says_nothing = False
            if _is_withheld(said, depth + 1):
                return True
    return says_nothing and (value.get("role") in _SPEAKERS or value.get("type") in _TEXT_TYPES)
