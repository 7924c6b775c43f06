"""Runs in a recording: which of its spans make one, by the rules of the live side as far as a recording shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spangate import _keys as keys
from spangate._canonical import text_hash
from spangate._dialects import classify
from spangate._forest import Part, find_runs, local_trees
from spangate._notes import foreign_parent, parent_unsampled, unsampled_inside, unsampled_run
from spangate._records import Finding, Span
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
        runs += [_run(root, part, starts_known=starts_known) for part in parts]
        outside = [*outside, *beside]
    return runs, outside


def _is_verdict(span: Span) -> bool:
    return span.scope == "spangate" and keys.VERDICT in span.attributes and span.name.startswith(_VERDICT_NAMES)


def _run(top: Span, part: Part, *, starts_known: bool) -> Run:
    notes = [*_standing(top, part.root), *unsampled_inside(part.root, part.spans), *unsampled_run(part.root)]
    return Run(_run_id(part), part.root, part.spans, "offline", notes, starts_known)


def _standing(top: Span, root: Span) -> Iterator[Finding]:
    """Yield what is to be said of a tree whose root ``top`` has a parent that is not recorded; it is told its run."""
    if top.parent_id is not None and not top.parent_remote and root is top:
        yield foreign_parent(root) if top.parent_sampled else parent_unsampled(root)


def _run_id(part: Part) -> str:
    """Return the run id that all spans agree on, else one that follows from the root."""
    stamped = part.bearer.attributes.get(keys.RUN_ID)
    if isinstance(stamped, str) and stamped and all(span.attributes.get(keys.RUN_ID) == stamped for span in part.spans):
        return stamped
    return text_hash(f"{part.root.hex_trace_id}:{part.bearer.hex_id}", _ID_DIGITS)
