"""Runs as the buffer knows them: members, what is worth noting about how they were gathered, what to remember."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from spangate._buffer.hearing import Told
from spangate._buffer.memory import MAX_IDS
from spangate._buffer.tree import Decided, Tree
from spangate._notes import after_entry, foreign_parent, parent_unsampled, unsampled_run
from spangate._records import AGENT_ROLES, Finding, Span, Trigger

MAX_PROGRAMS = 4096
"""Of so many programs of a large run it is remembered that they were its."""
FOREVER = 1 << 62
"""A moment in the order of starts and ends that never comes."""


def notes_of(tree: Tree, root: Span, spans: Sequence[Span], trigger: Trigger) -> list[Finding]:
    """Return the findings that only whoever gathered the spans of a run can know."""
    notes = [*_standing_notes(tree, root), *_adopted_notes(tree, root, spans)]
    if trigger == "memory" or tree.overflowed or (tree.cut and any(span.span_id in tree.cut for span in spans)):
        notes.append(Finding("buffer.overflow", root, "a bound on held spans was reached, so only a part was judged"))
    if tree.is_doubled:
        doubled = "its spans arrived more than once: the processor was added several times"
        notes.append(Finding("export.duplicate_span", root, doubled))
    return [*notes, *unsampled_run(root)]


def told_notes(told: Told, spans: Sequence[Span]) -> list[Finding]:
    """Return what others found about a run, each with the span of the run that it is about."""
    if not told.notes:
        return []
    by_id = {span.span_id: span for span in spans}
    return [replace(note, span=by_id[span_id]) for span_id, note in told.notes if span_id in by_id]


def _standing_notes(tree: Tree, root: Span) -> Iterator[Finding]:
    standing = tree.adopted.get(root.span_id, tree.standing)
    if standing == "unseen":
        yield Finding("forest.foreign_parent", root, "it was open when the gate was added, so its start was not seen")
    elif standing == "foreign":
        yield foreign_parent(root)
    elif standing == "unsampled":
        yield parent_unsampled(root)
    elif standing == "late":
        yield after_entry(root) if root.span_id in tree.adopted else _late(tree.above, root)


def _adopted_notes(tree: Tree, root: Span, spans: Sequence[Span]) -> Iterator[Finding]:
    """Yield what is to be said of members below the root that joined without a parent; the gate tells the rest."""
    for span in spans if tree.adopted else ():
        if span is not root and tree.adopted.get(span.span_id) == "unsampled":
            yield parent_unsampled(span)


def _late(above: Decided | None, root: Span) -> Finding:
    if above is not None and above.is_entry:
        return after_entry(root)
    what = f"started after its {'run' if root.parent_id is None else 'parent'} had ended"
    if above is not None and above.ruling in ("pass", "fail"):
        what += f" and its run {above.run_id} had been decided ({above.ruling})"
    return Finding("forest.late_child", root, what)


def unread(tree: Tree, run_id: str) -> Decided:
    """Return what is to be remembered of a tree until it has been read: every span of its trace may be a member."""
    above = tree.above
    return Decided(
        run_id=run_id,
        trace_id=tree.trace_id,
        span_ids=None,
        start_ns=0,
        end_ns=FOREVER,
        order=tree.order,
        has_agent=True,
        opened=[*tree.opened.values()],
        is_entry=above is not None and above.is_entry,
        supersedes=None if above is None or above.is_entry else above.verdict_span_id,
    )


def decision_about(spans: Sequence[Span], run_id: str, supersedes: int | None) -> Decided:
    """Return what is to be remembered of a run that was never in a tree, whose spans came from programs."""
    return Decided(
        run_id=run_id,
        trace_id=spans[0].trace_id,
        span_ids=_packed([span.span_id for span in spans]),
        start_ns=0,
        end_ns=0,
        order=0,
        has_agent=True,
        root_end_ns=spans[0].end_ns or 0,
        supersedes=supersedes,
    )


def remembered(tree: Tree, run_id: str, spans: Sequence[Span], *, is_entry: bool = False) -> Decided:
    """Return what is to be remembered of ``spans`` once they are decided."""
    few = len(spans) <= MAX_IDS
    above = tree.above
    return Decided(
        run_id=run_id,
        trace_id=tree.trace_id,
        span_ids=_packed([span.span_id for span in spans]) if few else None,
        start_ns=0 if few else min(span.start_ns for span in spans),
        end_ns=0 if few else max(span.end_ns or span.start_ns for span in spans),
        order=tree.order,
        has_agent=any(span.role in AGENT_ROLES for span in spans),
        root_end_ns=spans[0].end_ns or 0,
        programs=() if few else _packed([span.span_id for span in spans if span.role == "process"][:MAX_PROGRAMS]),
        opened=_opened_in(tree, spans),
        is_entry=is_entry or (above is not None and above.is_entry),
        supersedes=None if above is None or above.is_entry else above.verdict_span_id,
    )


def _opened_in(tree: Tree, spans: Sequence[Span]) -> Collection[str]:
    """Return the ids of the runs of the program's own that are opened by one of these spans of a tree."""
    if not tree.opened:
        return ()
    return [tree.opened[span.span_id] for span in spans if span.span_id in tree.opened]


def run_id_of_part(tree: Tree, spans: Sequence[Span]) -> str:
    """Return the id of a run in a tree that is decided part by part: its own, or the next of the tree."""
    return next(iter(_opened_in(tree, spans)), f"{tree.tree_id}.{tree.runs + 1}")


def _packed(ids: Sequence[int]) -> Collection[int]:
    """Return ids in eight bytes each: what is remembered for long must not weigh on the heap of the program."""
    try:
        return array("Q", ids)
    except (OverflowError, TypeError):  # what another id generator makes
        return tuple(ids)
