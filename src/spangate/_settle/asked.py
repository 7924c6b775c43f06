"""What is known of model calls from elsewhere than their spans, put on the records of these before they are judged.

That is what the program said itself, where a span turned out only later to be a model call, and what was overheard on
its way to the model; and the model that a span has recorded since it was stamped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spangate import _keys as keys
from spangate._asking import Block
from spangate._buffer.tree import Tree
from spangate._dialects import dialect_of
from spangate._fingerprint import Stamps
from spangate._fingerprint.overheard import Overheard
from spangate._fingerprint.sources import completed, lacks_something, placed
from spangate._records import Span

_FAR: Final = 64
"""Among so many generations before a request the one that sent it is looked for, and so many steps up from each."""


def put_stamps(spans: Sequence[Span], tree: Tree, model: str | None) -> None:
    """Put on the generations among ``spans`` what ``tree`` was told of their requests.

    What the spans themselves say stays. ``model`` is the one that is pinned where nobody names one.
    """
    by_id = {span.span_id: span for span in spans}
    unsure = [(span, tree.unsettled[span_id]) for span_id in [*tree.unsettled] if (span := by_id.get(span_id))]
    for span, block in unsure:
        if span.role == "generation":
            stamps = block.stamps if isinstance(block, Block) else tree.stamps.get(span.span_id, {})
            if block is None or block.take(span.trace_id, span.span_id):
                span.attributes = placed(span.attributes, stamps)
                _complete(span, model)
    if tree.overheard:
        for span_id, stamps in _sent_by([*tree.overheard], by_id).items():
            span = by_id[span_id]
            span.attributes = placed(span.attributes, stamps)
            if stamps.get(keys.FINGERPRINT_SOURCE) == span.attributes.get(keys.FINGERPRINT_SOURCE):
                _complete(span, model)


def _complete(span: Span, model: str | None) -> None:
    """Have a span that was stamped name the model that it has recorded since, or the pinned one."""
    stamps = span.attributes
    if keys.PROMPT_HASH in stamps and (lacks_something(stamps) or stamps.get(keys.FINGERPRINT_SOURCE) == "explicit"):
        span.attributes = {**stamps, **completed(stamps, dialect_of(span).request(span), model)}


def _sent_by(requests: Sequence[Overheard], by_id: Mapping[int, Span]) -> dict[int, Stamps]:
    """Return what each generation sent: the last of its requests, since an SDK repeats one that failed.

    A request belongs to the generation in which it was sent. Some instrumentations leave their span out of the context:
    the request was then sent somewhere above it, and belongs to the one generation below there at whose time it was.
    """
    found: dict[int, Stamps] = {}
    generations: Sequence[Span] | None = None
    for request in requests:
        span, stamps = by_id.get(request.context[1]), request.stamps()
        if span is None or not stamps:
            continue
        if span.role != "generation":
            if generations is None:
                generations = sorted((one for one in by_id.values() if one.role == "generation"), key=_start)
            below = _below(span, request.sent_ns, generations, by_id)
            if below is None:
                continue
            span = below
        found[span.span_id] = stamps
    return found


def _start(span: Span) -> int:
    return span.start_ns


def _below(above: Span, moment: int, generations: Sequence[Span], by_id: Mapping[int, Span]) -> Span | None:
    """Return the one generation below a span that was open at a moment; of stacked ones the innermost."""
    at = bisect_right(generations, moment, key=_start)
    around: set[int] = set()
    candidates: list[Span] = []
    for span in generations[max(at - _FAR, 0) : at]:
        if span.end_ns is None or span.end_ns >= moment:
            path = [*_path(span, above, by_id)]
            if path and path[-1] is above:
                candidates.append(span)
                around.update(step.span_id for step in path)
    innermost = [span for span in candidates if span.span_id not in around]
    return innermost[0] if len(innermost) == 1 else None


def _path(span: Span, above: Span, by_id: Mapping[int, Span]) -> Iterator[Span]:
    """Yield the spans above ``span``, up to ``above``."""
    step: Span | None = span
    for _ in range(_FAR):
        step = None if step is None or step.parent_id is None else by_id.get(step.parent_id)
        if step is None:
            return
        yield step
        if step is above:
            return
