"""The body of a request to a model, as the APIs of OpenAI and Anthropic take it, read as a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spangate._dialects._base import Request
from spangate._dialects._openinference_values import params_in
from spangate._records import ABSENT

_SYSTEM: Final = ("system", "instructions")
_MESSAGES: Final = ("messages", "input", "prompt")
_NO_PARAMS: Final = frozenset({"metadata", "extra_headers", "extra_body", "extra_query", "timeout", "user"})
_TAKEN: Final = frozenset({*_SYSTEM, *_MESSAGES, *_NO_PARAMS})


def request_in(body: Mapping[str, Any]) -> Request | None:
    """Return what a body asks for; None if it holds no messages, so that it is no request to a model.

    The system text of the chat completions API is one of the messages, that of the others stands apart. A body that
    says nothing of tools leaves them absent, as the instrumentations do.
    """
    sent = _first(body, _MESSAGES)
    if sent is ABSENT:
        return None
    return Request(
        model=body.get("model", ABSENT),
        temperature=body.get("temperature", ABSENT),
        system=_first(body, _SYSTEM),
        messages=sent,
        tools=body.get("tools", ABSENT),
        params={key: value for key, value in params_in(body).items() if key not in _TAKEN},
    )


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in found:
            return found[key]
    return ABSENT
