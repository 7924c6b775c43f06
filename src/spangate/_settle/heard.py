"""What programs of a tree have sent, read and put together with what was recorded here."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from spangate._adapter import record
from spangate._buffer.received import Received
from spangate._dialects import classify
from spangate._forest import Part, local_trees
from spangate._records import Span

BY_START = attrgetter("start_ns")


def records_of(received: Iterable[Received], rest: Callable[[], None]) -> Iterator[Span]:
    """Read what was received as records. ``rest`` is called after every few spans."""
    received = [*received]
    if not received:
        return
    from spangate._sdk.received import spans_of  # it takes protobuf along, which most programs have no use for

    for request in received:
        for source in spans_of(request.message, rest):
            span = record(source, is_open=source.end_time is None, is_shared=False)
            span.sender_id = request.sender_id
            classify(span)
            yield span


def merged(heard: Sequence[Span], fresh: Iterable[Span]) -> list[Span]:
    """Return what was heard with what is fresh. What came before is there once: a request may be sent again.

    A span that was sent while it was open, and again when it had ended, is the one that ended.
    """
    spans = [*heard]
    known = {_identity(span): at for at, span in enumerate(spans)}
    for span in fresh:
        at = known.setdefault(_identity(span), len(spans))
        if at == len(spans):
            spans.append(span)
        elif spans[at].end_ns is None:
            spans[at] = span
        elif span.end_ns not in (None, spans[at].end_ns):
            spans.append(span)  # another one, with the same id
    return spans


def _identity(span: Span) -> tuple[int, int, int | None, int, str]:
    return span.trace_id, span.span_id, span.sender_id, span.start_ns, span.name


def ripe(heard: Sequence[Span], own: Sequence[Span]) -> Sequence[Span]:
    """Return what may be told apart already: what programs have sent that have ended, since they send no more.

    Children are sent before their parents, so until then nobody can say what a span belongs to.
    """
    running = {span.span_id for span in own if span.end_ns is None}
    return [span for span in heard if span.sender_id not in running] if running else heard


def together(own: Sequence[Span], heard: Sequence[Span]) -> tuple[Sequence[Span], Sequence[Part]]:
    """Return a tree's own spans with what programs recorded in its trace, in start order, and the trees beside it.

    ``own`` begins with the root, which stays in front. A tree beside it has a trace of its own: whoever recorded it has
    ignored the context that it was given.
    """
    inside = [span for span in heard if span.trace_id == own[0].trace_id]
    outside = [span for span in heard if span.trace_id != own[0].trace_id]
    connect(inside, (*own, *inside))
    connect(outside, outside)
    inside.sort(key=BY_START)
    outside.sort(key=BY_START)
    spans = [*own[:1], *heapq.merge(own[1:], inside, key=BY_START)]
    return spans, [Part(root, root, members) for root, members in local_trees(outside)]


def connect(spans: Iterable[Span], around: Iterable[Span]) -> None:
    """Have spans whose remote parents are here after all be children as any other."""
    ids = {(span.trace_id, span.span_id) for span in around}
    for span in spans:
        if (span.trace_id, span.parent_id) in ids:
            span.parent_remote = False
