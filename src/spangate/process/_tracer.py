"""The tracer that programs are traced with: of the provider that was named, else of the global one."""

from __future__ import annotations

from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Tracer, TracerProvider

from spangate._version import __version__

SCOPE: Final = "spangate.process"


class Choice:
    """Remembers the provider that was named, and the last tracer: making one takes as long as a span."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._named: TracerProvider | None = None
        self._last: tuple[TracerProvider, Tracer] | None = None

    def use_provider(self, provider: TracerProvider | None) -> None:
        """Have spans recorded by ``provider`` from now on; None: by the global one."""
        self._named = provider

    def tracer(self) -> Tracer:
        """Return the tracer."""
        provider = self._named or trace.get_tracer_provider()
        last = self._last
        if last is None or last[0] is not provider:
            last = self._last = provider, provider.get_tracer(self._scope, __version__)
        return last[1]


_choice: Final = Choice(SCOPE)
use_provider: Final = _choice.use_provider
tracer: Final = _choice.tracer
