"""Where a loop stands: which of its spans the current context is inside of, and how one is entered and left."""

from __future__ import annotations

import contextlib
from contextvars import Token
from typing import Any, Final

from opentelemetry import context, trace
from opentelemetry.context import Context

_INSIDE: Final = context.create_key("spangate-inside")


class Standing:
    """A span of a loop while it is current. ``inside`` is the context of what is done in it.

    ``around`` is the context that it was opened in.
    """

    def __init__(self, span: trace.Span, around: Context) -> None:
        self.span = span
        self._above = _here(around)
        self.inside = context.set_value(_INSIDE, self, trace.set_span_in_context(span, around))
        self._token: Any = None

    def enter(self) -> None:
        """Make the span current."""
        self._token = context.attach(self.inside)

    def leave(self) -> None:
        """Make current again what was so before, unless something around it was left first.

        In another thread or task than it was entered in nothing changes.
        """
        token, self._token = self._token, None
        if not self._is_around(context.get_current()):
            return
        if isinstance(token, Token):  # OpenTelemetry's own way would log an error for the other task
            with contextlib.suppress(ValueError, RuntimeError):
                token.var.reset(token)
        elif token is not None:
            context.detach(token)

    def here(self) -> Context:
        """Return the context to open something in: the current one if that is inside, else this one's own.

        A thread that knows nothing of the loop is not inside, and what it opens belongs here all the same.
        """
        current = context.get_current()
        return current if self._is_around(current) else self.inside

    def _is_around(self, inside: Context) -> bool:
        standing = _here(inside)
        while standing is not None and standing is not self:
            standing = standing._above  # noqa: SLF001  of its own kind
        return standing is self


def _here(inside: Context) -> Standing | None:
    found = context.get_value(_INSIDE, inside)
    return found if isinstance(found, Standing) else None
