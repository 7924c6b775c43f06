"""Cardinality: a span so large that receivers refuse it, and evidence that the limits of an SDK threw away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spangate._payload import span_bytes
from spangate._records import Finding, Span
from spangate._run import Run
from spangate._settings import check_ceiling
from spangate._units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """Finds spans over a size and spans that lost attributes, events or links.

    What a span lost is counted by its SDK; the stamps of this package that the SDK evicted are put back before a run
    is judged and are not among the losses.

    Attributes:
        max_span_bytes: Ceiling on the attributes and events of one span, in bytes of UTF-8; None for no ceiling. The
            default is what a gRPC receiver takes in one message unless it is told otherwise.

    Raises:
        ValueError: a ceiling that is no whole number, or is negative.
    """

    max_span_bytes: int | None = 4 << 20

    def __post_init__(self) -> None:
        check_ceiling("max_span_bytes", self.max_span_bytes)

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield the findings in the order of the spans' starts."""
        ceiling = self.max_span_bytes
        for span in run.spans:
            if ceiling is not None:
                size = span_bytes(span)
                if size > ceiling:
                    yield Finding("cardinality.span_bytes", span, f"{size} bytes > {ceiling}")
            if span.dropped_attributes or span.dropped_events or span.dropped_links:
                yield Finding("cardinality.attributes_dropped", span, _losses(span))


def _losses(span: Span) -> str:
    """Say what was lost, and by which variables the SDK is told to keep more."""
    dropped = (("attribute", span.dropped_attributes), ("event", span.dropped_events), ("link", span.dropped_links))
    lost = [(what, count) for what, count in dropped if count]
    losses = ", ".join(counted(count, what) for what, count in lost)
    limits = ", ".join(f"OTEL_SPAN_{what.upper()}_COUNT_LIMIT" for what, _ in lost)
    return f"lost {losses} to the limits of the SDK: raise {limits}, or record less"
