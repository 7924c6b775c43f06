"""Parcels of spans on their way out, and how they share export calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from spangate._buffer.tree import SPAN_OVERHEAD
from spangate._release.leaving import Leaving


def _keep(_start: int, _stop: int) -> None:
    """Keep spans that have left until the whole parcel has."""


@dataclass(frozen=True, eq=False, slots=True)
class Parcel:
    """Spans that belong together: a released run with its root last, a verdict span, or spans that pass untouched.

    ``sizes`` are the bytes of each span. ``delivered`` is called when the exporter has accepted all of them,
    ``refused`` with the number that it did accept, when it has finally refused one; what that returns goes out instead.
    ``let_go`` is called for a range of spans that the exporter has accepted.
    """

    spans: Sequence[Any]
    sizes: Sequence[int]
    delivered: Callable[[], None]
    refused: Callable[[int, str], Parcel | None]
    let_go: Callable[[int, int], None] = _keep

    def copy(self) -> Parcel:
        """Return the same for another exporter, which lets go of the spans in its own time."""
        if not isinstance(self.spans, Leaving):
            return self
        spans = self.spans.copy()
        return replace(self, spans=spans, let_go=spans.let_go)

    @property
    def weight(self) -> int:
        """Bytes of memory that the parcel takes up while it waits."""
        return sum(self.sizes) + SPAN_OVERHEAD * len(self.sizes)


class Refusal(NamedTuple):
    """Why the exporter did not take some spans, and of which nature that is.

    ``choked``: it cannot write a span among them. ``too_large``: they are too many for one call. ``passing``: it may
    take the same spans later. ``lasting``: it will not. ``said`` is what it said itself.
    """

    why: str
    nature: Literal["unknown", "choked", "too_large", "passing", "lasting"] = "unknown"
    said: str = ""


Row: TypeAlias = tuple[Parcel, int, int]
"""A parcel and the range of its spans that goes along in one call."""
Chunk: TypeAlias = list[Row]


def chunks(parcels: Sequence[Parcel], max_spans: int, max_bytes: int) -> Iterator[Chunk]:
    """Divide parcels into export calls of so many spans and bytes at most; one span may weigh more."""
    chunk: Chunk = []
    spans = size = 0
    for parcel in parcels:
        start = 0
        for number, weight in enumerate(parcel.sizes):
            if spans and (spans >= max_spans or size + weight > max_bytes):
                yield [*chunk, (parcel, start, number)] if number > start else chunk
                chunk, start, spans, size = [], number, 0, 0
            spans += 1
            size += weight
        chunk.append((parcel, start, len(parcel.sizes)))
    if spans:
        yield chunk
