"""Whether spans leave by another way than through the gate; said once for each, by name."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from spangate._sdk.takeover import exporters_in, siblings_of
from spangate._telemetry import logger


class Outlook:
    """Looks at the processors beside the gate when their number has changed."""

    def __init__(self, gate: SpanProcessor) -> None:
        self._gate = gate
        self._count = 1
        self._named: set[int] = set()

    def look(self, span: ReadableSpan) -> None:
        """Name the processors that export what ``span`` reports to them past the gate."""
        siblings = siblings_of(span)
        if len(siblings) == self._count:
            return
        self._count = len(siblings)
        for processor in siblings:
            if type(processor) is type(self._gate) or id(processor) in self._named:
                continue
            names = {type(exporter).__name__ for _, _, exporter in exporters_in(processor)}
            if names:
                self._named.add(id(processor))
                logger.warning(
                    "%s exports past the gate, to %s: refused runs leave by it. Use spangate.install() on this "
                    "provider, or take that processor off",
                    type(processor).__name__,
                    ", ".join(sorted(names)),
                )
