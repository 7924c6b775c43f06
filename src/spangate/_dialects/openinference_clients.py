"""OpenInference on the OpenAI and Anthropic clients: the whole request is there from the start, in ``input.value``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import Request
from spangate._dialects._values import parsed
from spangate._dialects.openinference import OpenInference
from spangate._records import ABSENT, Role, Span

_SYSTEM: Final = ("system", "instructions")
_MESSAGES: Final = ("messages", "input", "prompt")
_NO_PARAMS: Final = frozenset({"metadata", "extra_headers", "extra_body", "extra_query", "timeout", "user"})


class OpenInferenceClients(OpenInference):
    """What was asked for is read from the request itself, so that it is the same at the start and at the end."""

    name: ClassVar[str] = "openinference_clients"
    scopes: ClassVar[Mapping[str, Role]] = {
        "openinference.instrumentation.openai": "generation",
        "openinference.instrumentation.anthropic": "generation",
    }
    marks: ClassVar[tuple[str, ...]] = ()

    def request(self, span: Span) -> Request:
        """Return what a generation asked for."""
        asked_for = parsed(span.attributes.get(values.INPUT))
        sent = _first(asked_for, _MESSAGES) if isinstance(asked_for, Mapping) else ABSENT
        if sent is ABSENT or not isinstance(asked_for, Mapping):
            return super().request(span)
        taken = {*_SYSTEM, *_MESSAGES, *_NO_PARAMS}
        return Request(
            model=asked_for.get("model", ABSENT),
            temperature=asked_for.get("temperature", ABSENT),
            system=_first(asked_for, _SYSTEM),
            messages=sent,
            tools=asked_for.get("tools", ABSENT),
            params={key: value for key, value in values.params_in(asked_for).items() if key not in taken},
        )


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in found:
            return found[key]
    return ABSENT
