"""OpenInference on the OpenAI and Anthropic clients: the whole request is there from the start, in ``input.value``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spangate._dialects import _openinference_values as values
from spangate._dialects._base import Request
from spangate._dialects._bodies import request_in
from spangate._dialects._values import parsed
from spangate._dialects.openinference import OpenInference
from spangate._records import Role, Span


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
        found = request_in(asked_for) if isinstance(asked_for, Mapping) else None
        return super().request(span) if found is None else found
