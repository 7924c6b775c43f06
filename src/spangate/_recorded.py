"""Runs in a recording: which of its spans make one, by the rules of the live side as far as a recording shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spangate import _keys as keys
from spangate._canonical import text_hash
from spangate._dialects import classify
from spangate._forest import Part, find_runs, local_trees
from spangate._notes import foreign_parent, parent_unsampled, unsampled_run
from spangate._records import Span
from spangate._run import Run

_ID_DIGITS = 16
_VERDICT_NAMES = ("refused ", "passed ")


def recorded_runs(spans: Sequence[Span], starts_known: bool) -> tuple[list[Run], list[Span]]:  # noqa: FBT001  said of the recording
    """Divide recorded spans into runs, ready to be judged.

    Args:
        spans: the spans of one trace or of several, in the order of their starts. Their roles are set here.
        starts_known: whether the recording tells starts, so that spans without an end are known to be open.

    Returns:
        The runs in the order of their trees, and the spans that belong to none: what passed beside the runs, and
        verdict spans of earlier judgements.
    """
    judged = [span for span in spans if _is_verdict(span)]
    for span in spans:
        classify(span)
    rest = [span for span in spans if not _is_verdict(span)] if judged else spans
    runs: list[Run] = []
    outside = judged
    for root, members in local_trees(rest):
        parts, beside = find_runs(root, members)
        orphans = list(_orphans(members))
        runs += [_run(root, part, orphans, starts_known=starts_known) for part in parts]
        outside = [*outside, *beside]
    return runs, outside


def _is_verdict(span: Span) -> bool:
    return span.scope == "spangate" and keys.VERDICT in span.attributes and span.name.startswith(_VERDICT_NAMES)


def _orphans(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of a tree whose parent a sampler dropped."""
    below = [span for span in spans if not span.parent_sampled and not span.parent_remote]
    here = {(span.trace_id, span.span_id) for span in spans} if below else ()
    return (span for span in below if (span.trace_id, span.parent_id) not in here)


def _run(top: Span, part: Part, orphans: Sequence[Span], *, starts_known: bool) -> Run:
    members = {id(span) for span in part.spans} if orphans else ()
    notes = [parent_unsampled(span) for span in orphans if id(span) in members]
    if part.root is top and top.parent_id is not None and not top.parent_remote and top.parent_sampled:
        notes.append(foreign_parent(top))
    return Run(_run_id(part), part.root, part.spans, "offline", [*notes, *unsampled_run(part.root)], starts_known)


def _run_id(part: Part) -> str:
    """Return the run id that all spans agree on, else one that follows from the root."""
    stamped = part.bearer.attributes.get(keys.RUN_ID)
    if isinstance(stamped, str) and stamped and all(span.attributes.get(keys.RUN_ID) == stamped for span in part.spans):
        return stamped
    return text_hash(f"{part.root.hex_trace_id}:{part.bearer.hex_id}", _ID_DIGITS)
