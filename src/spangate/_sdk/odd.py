"""Values that the SDK takes from whoever sets them and that nobody can reckon with or send, made into ones that do."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

from spangate._verdict.account import clean

MAX_TIME = (1 << 64) - 1
"""The last nanosecond that can be sent."""


def text(value: object) -> str:
    """Return a text as it is, and of anything else what it says of itself."""
    return value if isinstance(value, str) else repr(value)


def clean_text(value: object) -> str:
    """Return a text without half characters, which an encoder would lose the whole batch over."""
    return clean(text(value))


def kind_of(value: Any) -> SpanKind:
    """Return what a span is, the default where its owner wrote anything else."""
    return value if isinstance(value, SpanKind) else SpanKind.INTERNAL


def code_of(value: Any) -> StatusCode:
    """Return a status code, the default for what is none."""
    return value if isinstance(value, StatusCode) else StatusCode.UNSET


def nanoseconds(value: object) -> int | None:
    """Return a time that can be reckoned with, zero for what is none. The SDK takes text and floats as times."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and abs(value) < MAX_TIME else None if value is None else 0


def sendable(value: object) -> int:
    """Return a time in the range that can be sent."""
    return min(max(nanoseconds(value) or 0, 0), MAX_TIME)


def is_sendable(value: object) -> bool:
    """Say whether a time can be sent as it is."""
    return type(value) is int and 0 <= value <= MAX_TIME
