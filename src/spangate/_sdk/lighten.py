"""Ended spans without the empty lists in which the SDK would keep events and links: most of what a held span weighs.

Each is a list with a deque and a lock, half of the objects that the garbage collector has to look at while a span is
held. Nobody can tell: what the span's properties return is the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util import BoundedList

from spangate._sdk.fields import is_known

_logger = logging.getLogger("spangate")


class _Nothing(BoundedList[Any]):
    """The events or the links of all ended spans that have none. It takes none either, as an ended span does not."""

    def append(self, item: object) -> None:
        """Refuse ``item``: it would be every span's."""
        _logger.warning("a span that has ended takes no %s", type(item).__name__)

    def extend(self, seq: Any) -> None:
        """Refuse all of them."""
        for item in seq:
            self.append(item)


_NOTHING: Final = _Nothing(0)


def _lighten(spans: Iterable[Any]) -> None:
    for span in spans:
        if type(span) is not ReadableSpan:
            continue
        events: Any = span._events  # noqa: SLF001  what this module is for
        links: Any = span._links  # noqa: SLF001
        if type(events) is BoundedList and not events._dq and not events.dropped:  # type: ignore[attr-defined]  # noqa: SLF001
            span._events = _NOTHING  # noqa: SLF001
        if type(links) is BoundedList and not links._dq and not links.dropped:  # type: ignore[attr-defined]  # noqa: SLF001
            span._links = _NOTHING  # noqa: SLF001


def _leave(_spans: Iterable[Any]) -> None:
    """Leave spans as they are."""


lighten: Final[Callable[[Iterable[ReadableSpan]], None]] = _lighten if is_known(ReadableSpan) else _leave
"""Has ended spans share what is empty, where it is known how the SDK keeps it."""
