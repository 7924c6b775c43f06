"""Forest: one root, one trace, every parent here, nothing that starts after its parent ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._records import Finding, Span
from spangate._run import Run
from spangate.gates.forest import Forest
from tests.spans import run_of, span

OTHER_TRACE = 0xB0B
GONE = 0xDEAD


def found(run: Run, gate: Forest | None = None) -> list[tuple[str, str]]:
    return [(f.code, f.span.name if f.span else "") for f in (gate or Forest())(run)]


def agent_with(*fields: dict[str, Any], **run_fields: Any) -> Run:
    """An agent from 0 s to 10 s, and one tool below it for each of ``fields``, named t1, t2 and on."""
    root = span("agent", "agent", end=10.0)
    tools = [span("tool", f"t{n}", parent=root, **given) for n, given in enumerate(fields, 1)]
    return run_of([root, *tools], **run_fields)


def second_root() -> Run:
    return agent_with({"parent_id": None})


def second_trace() -> Run:
    return agent_with({"trace_id": OTHER_TRACE, "parent_id": None})


def claimed_tree() -> Run:
    """A tool in a worker thread that did not copy the context, with a program below it."""
    root = span("agent", "agent", end=10.0)
    stray = span("tool", "search", start=1.0, end=2.0, trace_id=OTHER_TRACE)
    return run_of([root, stray, span("process", "rg", parent=stray)], claimed=[stray])


def parent_of_the_outer_context() -> Run:
    """A child process that inherited the context around the run, in place of the tool's."""
    root = span("agent", "agent", end=10.0, parent_id=GONE, parent_remote=True)
    tool = span("tool", "bash", parent=root)
    child = span("process", "pytest", parent=root, parent_id=GONE, parent_remote=True)
    return run_of([root, tool, child], claimed=[child])


def same_id_twice() -> Run:
    root = span("agent", "agent", end=10.0)
    first = span("tool", "t1", parent=root)
    return run_of([root, first, span("tool", "t2", parent=root, span_id=first.span_id)])


def circle() -> Run:
    root = span("agent", "agent", end=10.0)
    one, two = span("tool", "one"), span("tool", "two")
    one.parent_id, two.parent_id = two.span_id, one.span_id
    return run_of([root, one, two, span("other", "below", parent=two)])


def own_parent() -> Run:
    root = span("agent", "agent", end=10.0)
    alone = span("tool", "alone")
    alone.parent_id = alone.span_id
    return run_of([root, alone])


def two_hosts(start: float) -> Run:
    root = span("agent", "agent", end=10.0, resource={"host.id": "a"})
    return run_of([root, span("tool", "t1", parent=root, start=start, end=20.0, resource={"host.id": "b"})])


def in_javascript(start: float, language: str = "nodejs") -> Run:
    """A late start as a clock of milliseconds tells it; the root is of Python."""
    root = span("agent", "agent", end=20.0, resource={"telemetry.sdk.language": "python"})
    known = {"telemetry.sdk.language": language}
    tool = span("tool", "t1", parent=root, end=10.0, resource=known)
    return run_of([root, tool, span("other", "t2", parent=tool, start=start, end=20.0, resource=known)])


def loose_calls(*, orphan: bool = False) -> Run:
    """Two model calls of one request with no agent: the request and its handlers pass on their own."""
    request = span("entry", "POST /chat", kind="SERVER", end=10.0)
    handler = span("other", "handler", parent=request, end=9.0)
    first, second = span("generation", "chat 1", parent=request), span("generation", "chat 2", parent=handler)
    return run_of([first, second], claimed=[second] if orphan else [])


def late_subtree() -> Run:
    root = span("agent", "agent", end=10.0)
    late = span("tool", "late", parent=root, start=11.0, end=12.0)
    return run_of([root, late, span("process", "below", parent=late, start=11.5, end=11.6)])


def call_of_another_process() -> Run:
    """A model call below a remote parent, which is no request of ours, and one that hangs from nothing."""
    root = span("generation", "chat 1", parent_id=GONE, parent_remote=True)
    return run_of([root, span("generation", "chat 2", parent_id=GONE + 1)])


FINDS: dict[str, tuple[Callable[[], Run], list[tuple[str, str]]]] = {
    "a second root": (second_root, [("forest.multiple_roots", "t1")]),
    "a second root in a trace of its own": (
        second_trace,
        [("forest.multiple_trace_ids", "t1"), ("forest.multiple_roots", "t1")],
    ),
    "a trace id in the middle of the tree": (
        lambda: agent_with({"trace_id": OTHER_TRACE}),
        [("forest.multiple_trace_ids", "t1"), ("forest.missing_parent", "t1")],
    ),
    "a further trace once": (
        lambda: agent_with(*[{"trace_id": OTHER_TRACE, "parent_id": None, "span_id": n} for n in (1, 2)]),
        [
            ("forest.multiple_trace_ids", "t1"),
            ("forest.multiple_roots", "t1"),
            ("forest.multiple_roots", "t2"),
        ],
    ),
    "a tree that was claimed, and only that": (claimed_tree, [("forest.stray_root", "search")]),
    "a parent that nobody started": (
        lambda: agent_with({"parent_id": GONE}),
        [("forest.missing_parent", "t1")],
    ),
    "a remote parent outside the run": (
        parent_of_the_outer_context,
        [("forest.parent_outside_run", "pytest")],
    ),
    "a claimed model call whose parent nobody started": (
        lambda: loose_calls(orphan=True),
        [("forest.missing_parent", "chat 2")],
    ),
    "a model call whose parent nobody started, with no request around it": (
        call_of_another_process,
        [("forest.missing_parent", "chat 2")],
    ),
    "a start after the parent's end": (
        lambda: agent_with({"start": 10.001, "end": 11.0}),
        [("forest.late_child", "t1")],
    ),
    "only the top of what is late": (
        late_subtree,
        [("forest.late_child", "late")],
    ),
    "a late start on another host, beyond the tolerance": (
        lambda: two_hosts(11.001),
        [("forest.late_child", "t1")],
    ),
    "a late start in JavaScript, beyond what its clock tells apart": (
        lambda: in_javascript(10.003),
        [("forest.late_child", "t2")],
    ),
    "a start as late as that in another language": (
        lambda: in_javascript(10.001, "java"),
        [("forest.late_child", "t2")],
    ),
    "an id that was taken": (same_id_twice, [("forest.duplicate_span_id", "t2")]),
    "parents that go round, once": (circle, [("forest.parent_cycle", "one")]),
    "a span that is its own parent": (own_parent, [("forest.parent_cycle", "alone")]),
}


def under_unsampled_parent() -> Run:
    return agent_with({"parent_id": GONE, "parent_sampled": False})


def remote_child() -> Run:
    """A child process whose parent is a tool of the run."""
    root = span("agent", "agent", end=10.0)
    tool = span("tool", "bash", parent=root)
    child = span("process", "pytest", parent=tool, parent_remote=True)
    return run_of([root, tool, child], claimed=[child])


def below(kind: str, role: Any) -> Run:
    root = span("agent", "agent", end=10.0)
    gate = span(role, "queue", parent=root, kind=kind, end=1.0)
    return run_of([root, gate, span("tool", "later", parent=gate, start=5.0, end=6.0)])


def late_below_open() -> Run:
    root = span("agent", "agent", end=None)
    return run_of([root, span("tool", "t1", parent=root, start=50.0, end=51.0)])


def backwards() -> Run:
    run = agent_with({}, {})
    return Run(run.run_id, run.root, run.spans[::-1])


STAYS_SILENT: dict[str, Callable[[], Run]] = {
    "one span": lambda: run_of([span("agent")]),
    "one tree": lambda: agent_with({}, {"start": 1.0}),
    "a root below a remote parent": lambda: run_of([span("agent", parent_id=GONE, parent_remote=True)]),
    "a root below a request that is no part of the run": lambda: run_of([span("agent", parent_id=GONE)]),
    "model calls of one request, whatever handler lies between": loose_calls,
    "a child process of a tool": remote_child,
    "a parent that the sampler dropped": under_unsampled_parent,
    "a start at the very end of the parent": lambda: agent_with({"start": 10.0, "end": 11.0}),
    "an end after the parent's end": lambda: agent_with({"start": 9.0, "end": 11.0}),
    "a start below a parent that is still open": late_below_open,
    "a consumer that starts when its producer is long done": lambda: below("PRODUCER", "other"),
    "a background task of a request that was answered": lambda: below("SERVER", "entry"),
    "a late start on another host, within the tolerance": lambda: two_hosts(11.0),
    "a late start in JavaScript, within what its clock tells apart": lambda: in_javascript(10.001),
    "spans in no order at all": backwards,
    "equal start times": lambda: agent_with({"start": 0.0}, {"start": 0.0}),
}


@pytest.mark.parametrize(("make", "expected"), FINDS.values(), ids=FINDS)
def test_finds(make: Callable[[], Run], expected: list[tuple[str, str]]) -> None:
    assert found(make()) == expected


@pytest.mark.parametrize("make", STAYS_SILENT.values(), ids=STAYS_SILENT)
def test_stays_silent(make: Callable[[], Run]) -> None:
    assert found(make()) == []


def test_tolerance_is_a_setting() -> None:
    assert found(two_hosts(14.0), Forest(skew_tolerance_s=5.0)) == []


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_is_a_time(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"skew_tolerance_s is .*: write seconds, 0 or more"):
        Forest(skew_tolerance_s=tolerance)


def test_one_clock_has_no_tolerance_however_the_host_is_recorded() -> None:
    run = two_hosts(10.5)
    run.spans[1].resource = {"service.name": "no host here"}
    assert found(run, Forest(skew_tolerance_s=5.0)) == [("forest.late_child", "t1")]


def test_details_say_what_a_person_looks_for() -> None:
    details = [f.detail for make, _ in FINDS.values() for f in Forest()(make()) if f.code == "forest.late_child"]
    assert details[0] == "started 1 ms after its parent 'agent' ended"


def test_leaves_what_only_the_gatherer_sees_to_the_notes() -> None:
    note = Finding("forest.foreign_parent", span("agent"))
    run = replace(agent_with({}), notes=[note])
    assert found(run) == []


@st.composite
def forests(draw: st.DrawFn) -> Sequence[Span]:
    """Spans with any parents at all, the first of them the root."""
    count = draw(st.integers(1, 12))
    spans = [span("agent", start=draw(st.integers(0, 3)), end=9.0) for _ in range(count)]
    for one in spans[1:]:
        parent = draw(st.sampled_from([*spans, None]))
        one.parent_id = None if parent is None else parent.span_id
    return spans


@given(forests())
def test_a_cycle_is_found_exactly_where_spans_hang_from_no_top(spans: Sequence[Span]) -> None:
    run = run_of(spans)
    tops = [one for one in spans if one.parent_id is None]
    reached = {id(one) for top in tops for one in (top, *run.descendants(top))}
    codes = [code for code, _ in found(run)]
    assert ("forest.parent_cycle" in codes) == (len(reached) < len(spans))
    assert codes.count("forest.multiple_roots") == len(tops) - 1
