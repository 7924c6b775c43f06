"""What became of a span: effective status, from status, ``error.type``, exception events and a dialect's own mark.

Most of the world leaves healthy spans UNSET, and some mark failures as data under a status of OK: UNSET and OK are
equal here. How a span failed is told by the names of exception types, never by messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from spangate._records import Outcome, Span

ERROR_TYPE: Final = "error.type"
_MAX_NAME: Final = 256
_DESCRIBED: Final = re.compile(r"([A-Za-z_][\w.]*)(?=\(|: |$)")

_CONTROL_FLOW: Final = frozenset(
    {
        "ApprovalRequired",
        "CallDeferred",
        "Command",
        "GraphBubbleUp",
        "GraphDrained",
        "GraphInterrupt",
        "Handoff",
        "HumanFeedbackPending",
        "MiddlewareTermination",
        "ModelRetry",
        "NodeInterrupt",
        "ParentCommand",
        "RetryModelRequest",
        "SkipModelRequest",
        "SkipToolExecution",
        "SkipToolValidation",
        "StopAsyncIteration",
        "StopIteration",
        "ToolRetryError",
        "UserInputRequiredException",
        "WaitingForEvent",
        "WorkflowDone",
    }
)
_CANCELLED: Final = frozenset(
    {
        "CANCELLED",
        "Cancelled",
        "CancelledError",
        "GeneratorExit",
        "KeyboardInterrupt",
        "RunCancelled",
        "WorkflowCancelledByUser",
        "abandoned stream",
        "canceled",
        "cancelled",
    }
)
_TIMEOUT: Final = ("timeout", "timedout", "timed_out", "deadlineexceeded", "deadline_exceeded")


def outcome_of(span: Span, *, failed: bool = False) -> Outcome:
    """Return the effective status of ``span``. ``failed`` is a dialect's own mark of failure.

    Where several names are recorded, one that says how the span failed wins over one that says only that it did.
    """
    if span.status != "ERROR" and not span.events and ERROR_TYPE not in span.attributes:
        return "error" if failed else "ok"
    found: Outcome = "error" if failed or span.status == "ERROR" else "ok"
    for name in names_of(span):
        kind = outcome_named(name)
        if kind != "error":
            return kind
        found = kind
    return found


def names_of(span: Span) -> Iterator[str]:
    """Yield the names of what ended the span, the most certain first."""
    error_type = span.attributes.get(ERROR_TYPE)
    if error_type:
        yield _name(error_type)
    raised = None
    for event in span.events:
        if event.name == "exception":
            raised = event
    if raised is not None:
        yield _name(raised.attributes.get("exception.type"))
    elif span.status == "ERROR":
        yield _described(span.status_description)


def _described(description: str) -> str:
    """Return the name at the start of a status description as the SDK writes it (``TimeoutError: too late``)."""
    if description.startswith("abandoned stream"):
        return "abandoned stream"
    found = _DESCRIBED.match(description, 0, _MAX_NAME)
    return found[1] if found else ""


def _name(value: Any) -> str:
    return value[:_MAX_NAME] if isinstance(value, str) else ""


@lru_cache(maxsize=1024)
def outcome_named(name: str) -> Outcome:
    """Say how a span failed whose exception type, with or without its module, is ``name``."""
    last = name.rpartition(".")[2]
    if last in _CONTROL_FLOW:
        return "control_flow"
    if last in _CANCELLED:
        return "cancelled"
    lowered = last.lower()
    return "timeout" if any(mark in lowered for mark in _TIMEOUT) else "error"
