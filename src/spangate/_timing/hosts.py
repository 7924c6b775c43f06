"""Which spans were timed by a clock that the run's own cannot be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spangate._records import Span
from spangate._run import Run

HOST_ID: Final = "host.id"
SKEW_NS: Final = 1_000_000_000
"""So far two hosts' clocks may be apart before a child's times are not believed beside its parent's."""


def elsewhere(run: Run) -> Mapping[int, str]:
    """Return the spans that another host has timed, by identity, each with how that is known.

    That is told by ``host.id`` of the resource; where it is not recorded, by a parent in another process before whose
    start, or after whose end, the span lies by more than a second. What is below such a span goes with it.
    """
    found: dict[int, str] = {}
    if any(span.parent_remote for span in run.spans) or len({id(span.resource) for span in run.spans}) > 1:
        host = run.root.resource.get(HOST_ID)
        for span in run.spans:
            why = next(_reasons(run, span, host, found), None)
            if why is not None:
                found[id(span)] = why
    return found


def _reasons(run: Run, span: Span, host: object, found: Mapping[int, str]) -> Iterator[str]:
    own = span.resource.get(HOST_ID)
    if own is not None and host is not None:
        if own != host:
            yield f"timed by another host ({HOST_ID} {str(own)[:40]})"
        return
    parent = run.parent_of(span)
    if parent is None or parent is span:
        return
    if id(parent) in found:
        yield "below a span that another clock has timed"
    elif span.parent_remote:
        early = parent.start_ns - span.start_ns
        late = 0 if parent.end_ns is None or span.end_ns is None else span.start_ns - parent.end_ns
        if max(early, late) > SKEW_NS:
            yield "its clock is more than a second away from its parent's"
