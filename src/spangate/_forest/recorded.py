"""Runs in a recording: which of its spans make one, by the rules of the live side as far as a recording shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spangate import _keys as keys
from spangate._canonical import text_hash
from spangate._dialects import classify
from spangate._forest import Part, find_runs, local_trees
from spangate._notes import foreign_parent, parent_unsampled, unsampled_run
from spangate._records import Finding, Span
from spangate._run import Run

_ID_DIGITS = 16
_VERDICT_NAMES = ("refused ", "passed ")


def recorded_runs(spans: Sequence[Span], starts_known: bool) -> tuple[list[Run], list[Span]]:  # noqa: FBT001  said of the recording
    """Divide recorded spans into runs, ready to be judged.

    Args:
        spans: the spans of one trace or of several, in the order of their starts. Their roles are set here,
            and parents that another process of the same run recorded are remote no longer.
        starts_known: whether the recording tells starts, so that spans without an end are known to be open.

    Returns:
        The runs in the order of their trees, and the spans that belong to none: what passed beside the runs, and
        verdict spans of earlier judgements.
    """
    judged = [span for span in spans if _is_verdict(span)]
    for span in spans:
        classify(span)
    rest = [span for span in spans if not _is_verdict(span)] if judged else spans
    _connect(rest)
    earlier = _earlier(judged)
    runs: list[Run] = []
    outside = judged
    for root, members in local_trees(rest):
        parts, beside = find_runs(root, members)
        orphans = list(_orphans(members))
        for part in parts:
            run_id = _run_id(part)
            codes = earlier.get((keys.RUN_ID, run_id), []) + earlier.get((keys.SUPERSEDES, part.bearer.hex_id), [])
            notes = [Finding(code, part.bearer, "said an earlier verdict on this run") for code in codes]
            notes += _standing(root, part, orphans)
            runs.append(Run(run_id, part.root, part.spans, "offline", notes, starts_known))
        outside += beside
    return runs, outside


def _connect(spans: Sequence[Span]) -> None:
    """Put what programs of a run recorded below their parents again, as the gate did that judged all of it as one."""
    remote = [span for span in spans if span.parent_remote and keys.RUN_ID in span.attributes]
    known = {(span.trace_id, span.span_id): span.attributes.get(keys.RUN_ID) for span in spans} if remote else {}
    for span in remote:
        run_id = span.attributes[keys.RUN_ID]
        if isinstance(run_id, str) and run_id and known.get((span.trace_id, span.parent_id or 0)) == run_id:
            span.parent_remote = False


def _is_verdict(span: Span) -> bool:
    return span.scope == "spangate" and keys.VERDICT in span.attributes and span.name.startswith(_VERDICT_NAMES)


def _orphans(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of a tree whose parent a sampler dropped."""
    below = [span for span in spans if not span.parent_sampled and not span.parent_remote]
    here = {(span.trace_id, span.span_id) for span in spans} if below else ()
    return (span for span in below if (span.trace_id, span.parent_id) not in here)


def _standing(top: Span, part: Part, orphans: Sequence[Span]) -> Iterator[Finding]:
    """Yield what is to be said of parents that are not recorded."""
    members = {id(span) for span in part.spans} if orphans else ()
    for span in orphans:
        if id(span) in members:
            yield parent_unsampled(span)
    if part.root is top and top.parent_id is not None and not top.parent_remote and top.parent_sampled:
        yield foreign_parent(top)
    yield from unsampled_run(part.root)


def _earlier(judged: Sequence[Span]) -> dict[tuple[str, Any], list[str]]:
    """Return the codes by which earlier verdicts say that a recorded run is not whole, by its run id or its root's id.

    It left in part, or something came late. A refused run is not recorded, so its verdict is about none of these; that
    of a dry run is given anew.
    """
    found: dict[tuple[str, Any], list[str]] = {}
    for verdict in judged:
        codes = verdict.attributes.get(keys.FINDINGS)
        known = [code for code in codes if isinstance(code, str)] if isinstance(codes, list | tuple) else []
        run_id, superseded = (verdict.attributes.get(key) for key in (keys.RUN_ID, keys.SUPERSEDES))
        if isinstance(run_id, str) and "export.partial" in known:
            found.setdefault((keys.RUN_ID, run_id), []).append("export.partial")
        if isinstance(superseded, str):
            found.setdefault((keys.SUPERSEDES, superseded), []).extend(known)
    return found


def _run_id(part: Part) -> str:
    """Return the run id that all spans agree on, else one that follows from the root."""
    stamped = part.bearer.attributes.get(keys.RUN_ID)
    if isinstance(stamped, str) and stamped and all(span.attributes.get(keys.RUN_ID) == stamped for span in part.spans):
        return stamped
    return text_hash(f"{part.root.hex_trace_id}:{part.bearer.hex_id}", _ID_DIGITS)
