"""Requests and responses as decisions: what of a request decides, and what of a response is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from spangate.tape._errors import ReplayMiss

MODEL: Final = "llm"
OTHER: Final = "http"
_MODELS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings", ":generateContent")
_STREAMED: Final = (":streamGenerateContent",)
_KEPT: Final = frozenset(
    {
        *("content-type", "content-encoding", "location", "retry-after", "retry-after-ms", "x-should-retry"),
        *("x-request-id", "request-id"),
    }
)
"""Headers of a response that a client looks at; no cookies, no credentials, no dates."""
_BOUNDARY: Final = re.compile(rb'boundary="?([^";,]+)"?', re.IGNORECASE)


def decision_of(method: str, url: str, content_type: bytes, body: bytes) -> tuple[str, dict[str, Any]]:
    """Return kind and payload of a request: method, path, query and body; neither the host nor any header decides."""
    parts = urlsplit(url)
    kind = MODEL if parts.path.endswith((*_MODELS, *_STREAMED)) else OTHER
    payload: dict[str, Any] = {"method": method.upper(), "path": parts.path}
    if parts.query:
        payload["query"] = dict(parse_qsl(parts.query, keep_blank_values=True))
    if body:
        payload["body"] = _body(content_type, body)
    return kind, payload


def _body(content_type: bytes, body: bytes) -> Any:
    boundary = _BOUNDARY.search(content_type)
    if boundary is not None:  # a client makes up another one for each request
        body = body.replace(boundary[1], b"boundary")
    try:
        return json.loads(body, parse_constant=str)
    except (ValueError, RecursionError):
        return text_or_bytes(body)


def text_or_bytes(content: bytes) -> str | bytes:
    """Return content as text, where it is some, so that a person can read it in the cassette."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


def content_of(kept: Any) -> bytes:
    """Return what :func:`text_or_bytes` was given."""
    return kept.encode("utf-8") if isinstance(kept, str) else bytes(kept)


def head(status: int, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return what is kept of a response before its body."""
    return {"status": status, "headers": [[name, value] for name, value in headers if name.lower() in _KEPT]}


def headers_of(kept: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the headers of a kept response."""
    return [(str(name), str(value)) for name, value in kept.get("headers", ())]


def refusal(miss: ReplayMiss) -> tuple[int, Sequence[tuple[str, str]], bytes]:
    """Return the response that a client gets which sends what was not recorded: an error that it does not try again.

    The clients of OpenAI and Anthropic read the same body. An exception here would be taken for a bad connection.
    """
    told = {"type": "error", "error": {"type": "replay_miss", "code": "replay_miss", "message": str(miss)}}
    return 400, [("content-type", "application/json"), ("x-should-retry", "false")], json.dumps(told).encode()
