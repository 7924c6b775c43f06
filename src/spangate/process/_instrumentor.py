"""The instrumentor that OpenTelemetry's zero-code set-ups find by its entry point."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # it has no types

from spangate.process._instrument import instrument, uninstrument


class ProcessInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Does what :func:`spangate.process.instrument` does."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return nothing: it is the standard library that is instrumented."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        instrument(kwargs.get("tracer_provider"))

    def _uninstrument(self, **_kwargs: Any) -> None:
        uninstrument()
