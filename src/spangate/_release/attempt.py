"""Calls of exporters, which may be anybody's: they end no thread, and what they do is not traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace.export import SpanExportResult

from spangate._release.chunks import Refusal
from spangate._sdk.takeover import silenced

_CHOKED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What an exporter raises that cannot write a span, as against one that cannot reach its backend."""


def attempt(act: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return what ``act`` returns and what it raised, one of which is None. Only a keyboard interrupt goes through."""
    token = attach(silenced())
    try:
        return act(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  sys.exit() and a cancelled task end threads too
        return None, error
    finally:
        detach(token)


def try_export(export: Callable[[Sequence[Any]], SpanExportResult], spans: Sequence[Any]) -> Refusal | None:
    """Export some spans. Returns None if they were accepted."""
    result, error = attempt(partial(export, spans))
    if error is not None:
        return Refusal(f"raised {type(error).__name__}", isinstance(error, _CHOKED))
    return Refusal("refused") if result is SpanExportResult.FAILURE else None
