"""Timing: a span takes time, it does not give any back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spangate._records import Finding
from spangate._run import Run
from spangate._units import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Finds spans that end before they start, which no arithmetic over times may be built on."""

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield the spans in the order of their starts. One that is still open has no end to be wrong."""
        for span in run.spans:
            if span.end_ns is not None and span.end_ns < span.start_ns:
                yield Finding(
                    "timing.inverted_span", span, f"ends {duration(span.start_ns - span.end_ns)} before it starts"
                )
