"""Which spans make a run: local trees, the runs in them, what lies outside any run. Pure questions about records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spangate._records import AGENT_ROLES, Span

Unit: TypeAlias = Literal["tree", "agent"]
"""``tree``: a local tree is one run. ``agent``: every topmost agent or workflow span in it is a run of its own."""

RUN_MAKERS = frozenset({"agent", "workflow"})
STRAY_ROLES = frozenset({"generation", "tool", "process"})


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """The spans of one run inside a local tree, in start order.

    ``root`` is the span whose end closes the run, ``bearer`` the one that bears the verdict attributes. They differ
    only for generations and tools directly below an entry span, which form one run without a span of its own.
    """

    root: Span
    bearer: Span
    spans: Sequence[Span]


def find_runs(root: Span, spans: Sequence[Span], unit: Unit = "tree") -> tuple[list[Part], list[Span]]:
    """Divide one local tree into its runs and the spans that belong to none (design section 3, rules 1, 2, 3 and 7).

    Args:
        root: the local root.
        spans: the tree in start order, roles set; the root among them.
        unit: what is judged as one.

    Returns:
        The runs in the order in which their roots started, and the spans outside them, in start order.
    """
    if not has_agent(spans):
        return [], list(spans)
    if root.role != "entry" and (unit == "tree" or root.role in RUN_MAKERS):
        return [Part(root, root, spans)], []
    return split_below(root, spans, AGENT_ROLES if root.role == "entry" else RUN_MAKERS)


def split_below(root: Span, spans: Sequence[Span], wanted: frozenset[str]) -> tuple[list[Part], list[Span]]:
    """Divide what lies below ``root``: each topmost agent or workflow is a run, other topmost wanted roles form one."""
    home = _homes(root, spans, wanted)
    members: dict[int, list[Span]] = {}
    loose: list[Span] = []
    outside: list[Span] = []
    for span in spans:
        top = home[id(span)]
        if top is None:
            outside.append(span)
        elif top.role in RUN_MAKERS:
            members.setdefault(id(top), []).append(span)
        else:
            loose.append(span)
    parts = [Part(home_of[0], home_of[0], home_of) for home_of in members.values()]
    if loose:
        parts.append(Part(root, loose[0], loose))
    return parts, outside


def _homes(root: Span, spans: Sequence[Span], wanted: frozenset[str]) -> dict[int, Span | None]:
    """Map each span's identity to the topmost span at or above it, below the root, whose role is wanted."""
    parents = parents_of(spans)
    homes: dict[int, Span | None] = {id(root): None}  # whatever its parent: in a tree where ids repeat that may be here
    for span in spans:
        path = []
        at: Span | None = span
        while at is not None and id(at) not in homes:
            homes[id(at)] = None  # so that a cycle of parents ends here
            path.append(at)
            at = parents.get(id(at))
        home = None if at is None else homes[id(at)]
        for below in reversed(path):
            if home is None and below.role in wanted:
                home = below
            homes[id(below)] = home
    return homes


def parents_of(spans: Iterable[Span]) -> dict[int, Span]:
    """Map each span's identity to its parent, where the parent is a local one and here."""
    by_id: dict[tuple[int, int], Span] = {}
    spans = list(spans)
    for span in spans:
        by_id.setdefault((span.trace_id, span.span_id), span)
    parents: dict[int, Span] = {}
    for span in spans:
        if span.parent_id is not None and not span.parent_remote:
            parent = by_id.get((span.trace_id, span.parent_id))
            if parent is not None and parent is not span:
                parents[id(span)] = parent
    return parents


def has_agent(spans: Iterable[Span]) -> bool:
    """Say whether any span has a role that makes a run."""
    return any(span.role in AGENT_ROLES for span in spans)


def is_stray_candidate(root: Span, spans: Sequence[Span]) -> bool:
    """Say whether a whole local tree might have lost its run (rule 6): parentless, unlinked, nothing but its work."""
    return root.parent_id is None and not root.links and all(span.role in STRAY_ROLES for span in spans)


def can_host(spans: Iterable[Span]) -> bool:
    """Say whether a run may own strays: something in it is an agent, a workflow or an iteration."""
    return any(span.role in RUN_MAKERS or span.role == "iteration" for span in spans)


def branches(root: Span, spans: Sequence[Span]) -> list[list[Span]]:
    """Divide a local tree into the subtrees directly below its root, which is in none of them."""
    parents = {child: parent for child, parent in parents_of(spans).items() if parent is not root}
    tops = _tops(spans, parents)
    found: dict[int, list[Span]] = {}
    for span in spans:
        if span is not root:
            found.setdefault(id(tops[id(span)]), []).append(span)
    return list(found.values())


def local_trees(spans: Sequence[Span]) -> list[tuple[Span, list[Span]]]:
    """Divide recorded spans into local trees (rule 4), each with its local root.

    A span whose parent is recorded nowhere and not known to be remote belongs to the first tree of its trace with a
    true or remote root, if there is one, where the forest gate will miss its parent; else another provider owns it and
    it is the root of a tree of its own.
    """
    parents = parents_of(spans)
    tops = _tops(spans, parents)
    firm: dict[int, Span] = {}
    for span in spans:
        if span.parent_id is None or span.parent_remote:
            firm.setdefault(span.trace_id, span)
    trees: dict[int, tuple[Span, list[Span]]] = {}
    for span in spans:
        top = tops[id(span)]
        if top.parent_id is not None and not top.parent_remote:
            top = firm.get(top.trace_id, top)
        trees.setdefault(id(top), (top, []))[1].append(span)
    return list(trees.values())


def _tops(spans: Sequence[Span], parents: dict[int, Span]) -> dict[int, Span]:
    """Map each span's identity to the topmost span above it; in a cycle of parents to the one that started first."""
    tops: dict[int, Span] = {}
    for span in spans:
        path = [span]
        seen = {id(span)}
        at = span
        while id(at) not in tops:
            above = parents.get(id(at))
            if above is None or id(above) in seen:
                break
            seen.add(id(above))
            path.append(above)
            at = above
        top = tops.get(id(at), path[0] if id(at) in parents else at)
        for below in path:
            tops.setdefault(id(below), top)
    return tops
