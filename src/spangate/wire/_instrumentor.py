"""The instrumentor that OpenTelemetry's zero-code set-ups find by its entry point."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # it has no types

from spangate.wire._clients import instrument, uninstrument

ARMED: Final = "SPANGATE_WIRE"
"""The environment variable that switches it on: what is sent is looked at only where somebody asks for it."""


class WireInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Does what :func:`spangate.wire.instrument` does, if ``SPANGATE_WIRE`` is 1 or true."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return nothing: whichever of the clients is there is watched."""
        return ()

    def _instrument(self, **_kwargs: Any) -> None:
        if os.environ.get(ARMED, "").strip().lower() in ("1", "true"):
            instrument()

    def _uninstrument(self, **_kwargs: Any) -> None:
        uninstrument()
