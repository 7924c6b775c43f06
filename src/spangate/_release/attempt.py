"""Calls of exporters, which may be anybody's: they end no thread, and what they do is not traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace.export import SpanExportResult

from spangate._release.chunks import Refusal
from spangate._sdk.reasons import listening, reason_of
from spangate._sdk.takeover import silenced

_CHOKED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What an exporter raises that cannot write a span, as against one that cannot reach its backend."""
_PASSING = frozenset({"ConnectionError", "Timeout", "TimeoutError", "TransportError"})
"""What the standard library, requests and httpx raise where nobody answers; by name, since we need neither library."""


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
    with listening() as heard:
        result, error = attempt(partial(export, spans))
    if error is not None:
        return _raised(error)
    if result is not SpanExportResult.FAILURE:
        return None
    reason = reason_of(heard)
    return Refusal(reason.word, reason.nature, reason.said)


def _raised(error: BaseException) -> Refusal:
    why = f"raised {type(error).__name__}"
    if isinstance(error, _CHOKED):
        return Refusal(why, "choked", str(error))
    is_passing = any(kind.__name__ in _PASSING for kind in type(error).__mro__)
    return Refusal(why, "passing" if is_passing else "unknown", str(error))
