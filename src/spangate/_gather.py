"""Runs as the buffer knows them: members, what is worth noting about how they were gathered, what to remember."""

from __future__ import annotations

from collections.abc import Sequence

from spangate._memory import MAX_IDS
from spangate._records import AGENT_ROLES, Finding, Span, Trigger
from spangate._tree import Decided, Tree

FOREVER = 1 << 62
"""A moment in the order of starts and ends that never comes."""


def notes_of(tree: Tree, root: Span, spans: Sequence[Span], trigger: Trigger) -> list[Finding]:
    """Return the findings that only whoever gathered the spans of a run can know."""
    notes = [*_standing_notes(tree, root), *_unsampled_notes(root, spans)]
    if tree.overflowed or trigger == "memory":
        notes.append(Finding("buffer.overflow", root, "a bound on held spans was reached, so only a part was judged"))
    if tree.copies:
        copies = f"{tree.copies} spans arrived more than once: the processor was added several times"
        notes.append(Finding("export.duplicate_span", root, copies))
    if not root.sampled:
        notes.append(Finding("export.unsampled_run", root, "the sampler recorded this run but did not sample it"))
    return notes


def _unsampled_notes(root: Span, spans: Sequence[Span]) -> list[Finding]:
    below = [span for span in spans if not span.parent_sampled and span is not root and not span.parent_remote]
    if not below:
        return []
    here = {span.span_id for span in spans}
    dropped = "a sampler dropped its parent, so the run may have used more than is recorded"
    return [Finding("forest.parent_unsampled", span, dropped) for span in below if span.parent_id not in here]


def _standing_notes(tree: Tree, root: Span) -> list[Finding]:
    if tree.standing == "unsampled":
        return [Finding("forest.parent_unsampled", root, "a sampler dropped the parent of the run's root")]
    if tree.standing in ("foreign", "unseen"):
        return [Finding("forest.foreign_parent", root, "the parent was never started under this provider")]
    if tree.standing != "late":
        return []
    if tree.above is not None and tree.above.is_entry:
        return [Finding("forest.after_entry", root, "it started after the request that it belongs to had ended")]
    what = "started after its parent had ended"
    if tree.above is not None and tree.above.ruling in ("pass", "fail"):
        what += f" and its run {tree.above.run_id} had been decided ({tree.above.ruling})"
    return [Finding("forest.late_child", root, what)]


def unread(tree: Tree) -> Decided:
    """Return what is to be remembered of a tree until it has been read: every span of its trace may be a member."""
    above = tree.above
    return Decided(
        run_id=tree.tree_id,
        trace_id=tree.trace_id,
        span_ids=None,
        start_ns=0,
        end_ns=FOREVER,
        order=tree.order,
        end_order=tree.end_order or FOREVER,
        has_agent=True,
        is_entry=above is not None and above.is_entry,
        supersedes=None if above is None or above.is_entry else above.verdict_span_id,
    )


def remembered(tree: Tree, run_id: str, spans: Sequence[Span], *, is_entry: bool = False) -> Decided:
    """Return what is to be remembered of ``spans`` once they are decided."""
    few = len(spans) <= MAX_IDS
    above = tree.above
    return Decided(
        run_id=run_id,
        trace_id=tree.trace_id,
        span_ids=frozenset(span.span_id for span in spans) if few else None,
        start_ns=0 if few else min(span.start_ns for span in spans),
        end_ns=0 if few else max(span.end_ns or span.start_ns for span in spans),
        order=tree.order,
        end_order=tree.end_order or FOREVER,
        has_agent=any(span.role in AGENT_ROLES for span in spans),
        is_entry=is_entry or (above is not None and above.is_entry),
        supersedes=None if above is None or above.is_entry else above.verdict_span_id,
    )
