"""What is done with a request as it is sent: its body is kept for the gate, in a few microseconds, whatever it is."""

from __future__ import annotations

from time import time_ns
from typing import Any, Final

from opentelemetry.trace import get_current_span

from spangate._fingerprint.overheard import STREAMED
from spangate._hosts import tell_request
from spangate._telemetry import logger

_ENDINGS: Final = ("/chat/completions", "/responses", "/messages")
_failures: Final[list[str]] = []


def observe(request: Any) -> None:
    """Keep the body of a request to a model for the run that it is sent in. Never raises, and consumes nothing.

    Whoever sends it waits, so the steps stand in a row.
    """
    try:
        if request.method == "POST" and request.url.path.endswith(_ENDINGS):
            try:
                body = request.content
            except RuntimeError:  # what both libraries raise where it is a stream that nobody has read
                body, encoding = None, STREAMED
            else:
                is_plain = body[:1] == b"{"  # to look at the headers takes as long as all else
                encoding = "" if is_plain else request.headers.get("content-encoding", "")
            tell_request((get_current_span().get_span_context(), time_ns(), body, encoding))
    except Exception:  # noqa: BLE001  the request is the program's, and must leave
        if not _failures:
            logger.exception("a request could not be looked at; it is sent all the same")
            _failures.append("told")
