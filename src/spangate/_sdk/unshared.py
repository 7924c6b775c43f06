"""Ended spans that nobody else holds: what stands in them cannot change, so it need not be copied to be read.

A copy of every span's attributes is more than half of what judging a large run makes. Whoever else holds a span, such
as an exporter that redacts it late, shows in the count of its references.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import ReadableSpan

from spangate._sdk.fields import is_known

Told: TypeAlias = Iterable[tuple[Any, bool]]


def _counted(spans: Sequence[Any], is_usual: Callable[[int], Any]) -> Iterable[tuple[Any, Any]]:
    """Go through spans with what is said of their counts, in C code: a variable would be one more reference."""
    return zip(spans, map(is_usual, map(sys.getrefcount, spans)), strict=True)


def _usual_counts() -> tuple[int, int]:
    """Return the count of a span that one container holds, and of attributes that one span holds.

    How the interpreter passes arguments is part of them, so they are measured.
    """
    container = {1: ReadableSpan("probe", attributes=BoundedAttributes(attributes={"probe": 1}))}
    ((span, count),) = _counted([*container.values()], int)
    return count, sys.getrefcount(span._attributes)  # noqa: SLF001  what this module is for


def _is_exact() -> bool:
    """Say whether references are counted, and exactly: without the interpreter's lock they are not."""
    is_locked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return hasattr(sys, "getrefcount") and is_locked() and is_known(ReadableSpan)


_IS_EXACT: Final = _is_exact()
_SPAN, _ATTRIBUTES = _usual_counts() if _IS_EXACT else (0, 0)


def _told_apart(spans: Sequence[Any]) -> Told:
    return _counted(spans, _SPAN.__eq__)


def _told_shared(spans: Sequence[Any]) -> Told:
    return ((span, False) for span in spans)


told_apart: Final[Callable[[Sequence[Any]], Told]] = _told_apart if _IS_EXACT else _told_shared
"""Goes through a list of spans that a container holds, and says of each whether nobody else holds it."""


def holds_alone(span: ReadableSpan) -> bool:
    """Say whether an ended span is the only holder of its attributes: the live one, which has them too, is gone."""
    return type(span) is ReadableSpan and sys.getrefcount(span._attributes) == _ATTRIBUTES  # noqa: SLF001
