"""What two runs look like as trees and as logs: which name stands below which, and how often what was logged where.

Edges are compared as a set: a framework that goes through the same steps another number of times varies by itself, and
a call that was made once more is a change of the calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spangate._records import LogRecord, Span
from spangate._run import Run
from spangate._units import counted
from spangate.compare._changes import Change
from spangate.compare._naming import Names

Edge: TypeAlias = tuple[str, str]
"""The names of a parent and a child."""

_BODY: Final = 120
"""Characters of a log record's text that say which one it is."""


def edge_name(edge: Edge) -> str:
    """Write an edge as an allow file names it."""
    return " > ".join(edge)


@dataclass(slots=True)
class Tree:
    """The edges of a run with how often it has each, its roles, and its log records that join a span.

    ``children`` has the child of each edge that started first. ``orphans`` counts records that join none.
    """

    edges: Counter[Edge] = field(default_factory=Counter)
    children: dict[Edge, Span] = field(default_factory=dict)
    roles: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    orphans: int = 0


def tree_of(run: Run, names: Names, *, logs: bool) -> Tree:
    """Read the tree of a run; its log records only if ``logs``."""
    found = Tree()
    edges, children, parent_of, named = found.edges, found.children, run.parent_of, names.of_span
    for span in run.spans:
        parent = parent_of(span)
        if parent is not None:
            edge = named(parent), named(span)
            edges[edge] += 1
            if edge not in children:
                children[edge] = span
    found.roles.update({role: len(spans) for role, spans in run.by_role.items()})
    for record in run.records if logs else ():
        joined = run.by_id.get(record.trace_id, {}).get(record.span_id)
        if joined is None or record.span_ended:
            found.orphans += 1
        else:
            found.records[_record_name(joined, record, names)] += 1
    return found


def _record_name(span: Span, record: LogRecord, names: Names) -> str:
    """Name a record by its span, its severity and its event or the beginning of its text, without ids and numbers."""
    said = record.event_name or (record.body[:_BODY].partition("\n")[0] if isinstance(record.body, str) else "")
    level = record.severity_text or (f"severity {record.severity}" if record.severity else "")
    return ": ".join(part for part in (names.of_span(span), level, names.of(said)) if part)


def edge_changes(a: Tree, b: Tree) -> Iterator[Change]:
    """Yield the edges that only one of two runs has, in the order of their first children."""
    for edge in a.edges:
        if edge not in b.edges:
            yield Change(kind="edge_dropped", name=edge_name(edge), a=a.children[edge], count=a.edges[edge])
    for edge in b.edges:
        if edge not in a.edges:
            yield Change(kind="edge_added", name=edge_name(edge), b=b.children[edge], count=b.edges[edge])


def recounted(a: Tree, b: Tree) -> Mapping[str, tuple[int, int]]:
    """Return the edges that both have another number of times."""
    return {
        edge_name(edge): (count, b.edges[edge])
        for edge, count in a.edges.items()
        if edge in b.edges and b.edges[edge] != count
    }


def log_changes(a: Tree, b: Tree) -> Iterator[Change]:
    """Yield the log records that one of two runs has more often."""
    for name, count in (a.records - b.records).items():
        yield Change(kind="log_dropped", name=name, count=count)
    for name, count in (b.records - a.records).items():
        yield Change(kind="log_added", name=name, count=count)


def faults(a: Tree, b: Tree) -> Iterator[str]:
    """Yield what is to be said of log records that join no span that was open: they are not compared."""
    for side, tree in (("A", a), ("B", b)):
        if tree.orphans:
            records = counted(tree.orphans, "log record")
            yield f"{side}: {records} could be given to no open span of the run, and are not compared"
