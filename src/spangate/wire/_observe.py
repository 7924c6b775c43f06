"""What is done with a request as it is sent: its body is kept for the gate, in a few microseconds, whatever it is."""

from __future__ import annotations

import time
from typing import Any, Final

from opentelemetry import trace

from spangate._fingerprint.overheard import Overheard
from spangate._hosts import tell_request
from spangate._telemetry import logger

_ENDINGS: Final = ("/chat/completions", "/responses", "/messages")
_failures: Final[list[str]] = []


def observe(request: Any) -> None:
    """Keep the body of a request to a model for the run that it is sent in. Never raises, and consumes nothing."""
    try:
        if request.method == "POST" and request.url.path.endswith(_ENDINGS):
            _keep(request)
    except Exception:  # noqa: BLE001  the request is the program's, and must leave
        if not _failures:
            logger.exception("a request could not be looked at; it is sent all the same")
            _failures.append("told")


def _keep(request: Any) -> None:
    span = trace.get_current_span()
    if not span.is_recording():
        return
    context = span.get_span_context()
    body = _body_of(request)
    is_plain = body is None or body[:1] == b"{"
    encoding = "" if is_plain else request.headers.get("content-encoding", "")
    tell_request(Overheard(context.trace_id, context.span_id, time.time_ns(), body, encoding))


def _body_of(request: Any) -> bytes | None:
    """Return the body, None where it is a stream that nobody has read."""
    try:
        body = request.content
    except RuntimeError:  # what both libraries raise then
        return None
    return body if isinstance(body, bytes) else None
