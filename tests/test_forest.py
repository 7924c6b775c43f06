"""How local trees are divided: a table for each question, trees drawn by their indentation."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._forest import (
    RUN_MAKERS,
    Part,
    Unit,
    branches,
    can_host,
    find_runs,
    has_agent,
    is_stray_candidate,
    local_trees,
    split_below,
)
from spangate._records import AGENT_ROLES, Link, Role, Span
from tests.spans import span

ROLES: list[Role] = ["agent", "workflow", "generation", "tool", "iteration", "process", "setup", "entry", "other"]


def tree(drawing: str) -> list[Span]:
    """Make the spans of a drawing: a line each, ``role name``, two blanks deeper than its parent."""
    spans: list[Span] = []
    above: list[Span] = []
    for line in drawing.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        role, _, name = line.strip().partition(" ")
        del above[depth:]
        made = span(_role(role), name or role, parent=above[-1] if above else None)
        above.append(made)
        spans.append(made)
    return spans


def _role(word: str) -> Role:
    return next(role for role in ROLES if role == word)


def names(spans: Iterable[Span]) -> str:
    return " ".join(one.name for one in spans)


def drawn(parts: Sequence[Part], outside: Sequence[Span]) -> list[str]:
    """Write parts as ``root[bearer]: members``, and at last what is outside."""
    return [
        *(f"{part.root.name}[{part.bearer.name}]: {names(part.spans)}" for part in parts),
        f"outside: {names(outside)}",
    ]


RUNS = [
    pytest.param("other job\n  other step\n  process ffmpeg", "tree", ["outside: job step ffmpeg"], id="no agent role"),
    pytest.param("entry r\n  other q", "tree", ["outside: r q"], id="request without an agent"),
    pytest.param("agent a\n  tool t", "tree", ["a[a]: a t", "outside: "], id="agent root"),
    pytest.param("other job\n  agent a\n  agent b", "tree", ["job[job]: job a b", "outside: "], id="plain root"),
    pytest.param("process p\n  tool t", "tree", ["p[p]: p t", "outside: "], id="program root"),
    pytest.param(
        "entry r\n  other m\n    agent a\n      tool t\n        agent inner\n  other q\n  workflow b",
        "tree",
        ["a[a]: a t inner", "b[b]: b", "outside: r m q"],
        id="two agents behind one request",
    ),
    pytest.param(
        "entry r\n  other m\n    generation g1\n  tool t\n    other q\n  generation g2",
        "tree",
        ["r[g1]: g1 t q g2", "outside: r m"],
        id="loose calls are one run",
    ),
    pytest.param(
        "entry r\n  generation g\n  agent a\n    generation inside",
        "tree",
        ["a[a]: a inside", "r[g]: g", "outside: r"],
        id="loose calls beside an agent",
    ),
    pytest.param(
        "entry r\n  tool t\n    agent a\n      tool u",
        "tree",
        ["r[t]: t a u", "outside: r"],
        id="an agent below a loose tool is its own",
    ),
    pytest.param("entry r\n  process p\n  agent a", "tree", ["a[a]: a", "outside: r p"], id="a program beside"),
    pytest.param(
        "other h\n  agent a\n    agent inner\n  generation g\n  workflow w",
        "agent",
        ["a[a]: a inner", "w[w]: w", "outside: h g"],
        id="unit agent",
    ),
    pytest.param("agent a\n  agent inner", "agent", ["a[a]: a inner", "outside: "], id="unit agent, agent root"),
    pytest.param("tool t\n  agent a", "agent", ["a[a]: a", "outside: t"], id="unit agent, tool root"),
    pytest.param("other h\n  generation g", "agent", ["outside: h g"], id="unit agent without one"),
    pytest.param(
        "entry r\n  generation g\n  agent a", "agent", ["a[a]: a", "r[g]: g", "outside: r"], id="unit agent, request"
    ),
]


@pytest.mark.parametrize(("drawing", "unit", "expected"), RUNS)
def test_runs(drawing: str, unit: Unit, expected: list[str]) -> None:
    spans = tree(drawing)
    assert drawn(*find_runs(spans[0], spans, unit)) == expected


def test_a_root_that_has_left_is_in_front_all_the_same() -> None:
    spans = tree("entry r\n  other m\n    agent a\n  agent b")
    left = [spans[0], *spans[2:]]  # the middleware passed when its branch was done
    assert drawn(*find_runs(spans[0], left)) == ["a[a]: a", "b[b]: b", "outside: r"]


def test_parents_that_go_round_end_nothing() -> None:
    spans = tree("entry r\n  agent a\n    agent b\n      tool t")
    spans[1].parent_id = spans[3].span_id
    parts, outside = find_runs(spans[0], spans)
    assert sorted(names([*outside, *(member for part in parts for member in part.spans)]).split()) == list("abrt")


def test_a_root_is_outside_though_an_id_that_repeats_makes_it_look_like_a_child() -> None:
    spans = tree("entry r\n  agent a\n    tool t")
    spans[0].parent_id = spans[1].span_id
    assert drawn(*find_runs(spans[0], spans)) == ["a[a]: a t", "outside: r"]


def test_splitting_asks_for_the_topmost_of_what_is_wanted() -> None:
    spans = tree("other r\n  iteration i\n    tool t\n  other o\n    tool u")
    assert drawn(*split_below(spans[0], spans, AGENT_ROLES)) == ["r[i]: i t u", "outside: r o"]
    assert drawn(*split_below(spans[0], spans, RUN_MAKERS)) == ["outside: r i t o u"]


BRANCHES = [
    ("other r", []),
    ("other r\n  other a\n    other b\n  other c", ["a b", "c"]),
    ("other r\n  other a\n  other b\n  other c", ["a", "b", "c"]),
]


@pytest.mark.parametrize(("drawing", "expected"), BRANCHES)
def test_branches(drawing: str, expected: list[str]) -> None:
    spans = tree(drawing)
    assert [names(branch) for branch in branches(spans[0], spans)] == expected


def test_a_branch_whose_top_has_left_is_one_still() -> None:
    spans = tree("entry r\n  other a\n    other b\n  other c")
    assert [names(branch) for branch in branches(spans[0], [spans[0], *spans[2:]])] == ["b", "c"]


def test_local_trees_of_a_trace() -> None:
    root = span(name="root")
    child = span(name="child", parent=root)
    served = span(name="served", parent=child, parent_remote=True)
    lost = span(name="lost", parent_id=999)
    below = span(name="below", parent=lost)
    trees = local_trees([root, child, served, lost, below])
    assert [(top.name, names(members)) for top, members in trees] == [
        ("root", "root child lost below"),
        ("served", "served"),
    ]


def test_local_trees_where_another_provider_owns_the_parents() -> None:
    one, two = span(name="one", parent_id=998), span(name="two", parent_id=999)
    below = span(name="below", parent=one)
    assert [(top.name, names(members)) for top, members in local_trees([one, two, below])] == [
        ("one", "one below"),
        ("two", "two"),
    ]


def test_local_trees_of_several_traces_do_not_adopt_each_others() -> None:
    root, lost = span(name="root"), span(name="lost", trace_id=7, parent_id=999)
    assert [(top.name, names(members)) for top, members in local_trees([root, lost])] == [
        ("root", "root"),
        ("lost", "lost"),
    ]


def test_a_circle_of_parents_is_a_tree_of_the_one_that_started_first() -> None:
    one = span(name="one", parent_id=102, span_id=101)
    two = span(name="two", parent_id=101, span_id=102)
    self = span(name="self", parent_id=103, span_id=103, trace_id=9)
    assert [(top.name, names(members)) for top, members in local_trees([one, two, self])] == [
        ("one", "one two"),
        ("self", "self"),
    ]


STRAYS = [
    ("tool t", True),
    ("generation g", True),
    ("process p", True),
    ("tool t\n  generation g\n  process p", True),
    ("agent a", False),
    ("workflow w", False),
    ("iteration i", False),
    ("setup s", False),
    ("other o", False),
    ("tool t\n  other o", False),
    ("entry e\n  tool t", False),
]


@pytest.mark.parametrize(("drawing", "expected"), STRAYS)
def test_stray_candidates(drawing: str, expected: bool) -> None:  # noqa: FBT001  a column
    spans = tree(drawing)
    assert is_stray_candidate(spans[0], spans) is expected


@pytest.mark.parametrize("fields", [{"parent_id": 9}, {"parent_id": 9, "parent_remote": True}, {"links": [Link(1, 2)]}])
def test_a_tree_with_a_parent_or_a_link_is_no_stray(fields: dict[str, Any]) -> None:
    root = span("tool", **fields)
    assert not is_stray_candidate(root, [root])


@pytest.mark.parametrize(
    ("role", "is_agent", "hosts"),
    [
        ("agent", True, True),
        ("workflow", True, True),
        ("iteration", True, True),
        ("generation", True, False),
        ("tool", True, False),
        ("process", False, False),
        ("setup", False, False),
        ("transport", False, False),
        ("entry", False, False),
        ("other", False, False),
    ],
)
def test_what_roles_make_of_a_tree(role: Role, is_agent: bool, hosts: bool) -> None:  # noqa: FBT001  columns
    spans = [span("other"), span(role)]
    assert has_agent(spans) is is_agent
    assert can_host(spans) is hosts


@st.composite
def any_trees(draw: st.DrawFn) -> list[Span]:
    spans = [span(draw(st.sampled_from(ROLES)))]
    for _ in range(draw(st.integers(0, 12))):
        spans.append(span(draw(st.sampled_from(ROLES)), parent=draw(st.sampled_from(spans))))
    return spans


@given(any_trees(), st.sampled_from(["tree", "agent"]))
def test_every_span_is_in_one_run_or_outside_in_the_order_of_starts(spans: list[Span], unit: Unit) -> None:
    parts, outside = find_runs(spans[0], spans, unit)
    order = {id(one): number for number, one in enumerate(spans)}
    groups = [*(list(part.spans) for part in parts), outside]
    assert sorted(order[id(one)] for group in groups for one in group) == list(range(len(spans)))
    for group in groups:
        assert group == sorted(group, key=lambda one: order[id(one)])
    for part in parts:
        assert part.bearer is part.spans[0]
        assert has_agent(part.spans)
    if unit == "tree":
        assert not has_agent(outside)


@given(any_trees(), st.randoms(use_true_random=False))
def test_local_trees_hold_every_span_once_whatever_is_missing(spans: list[Span], chance: random.Random) -> None:
    left = [one for one in spans if chance.random() < 0.7]
    for one in left:
        one.parent_remote = one.parent_id is not None and chance.random() < 0.2
    trees = local_trees(left)
    assert sorted(id(one) for _, members in trees for one in members) == sorted(map(id, left))
    assert all(any(one is top for one in members) for top, members in trees)


def test_a_deep_tree_and_a_wide_one_cost_no_more_than_their_spans() -> None:
    deep = [span("entry")]
    for _ in range(20_000):
        deep.append(span("other", parent=deep[-1]))
    deep.append(span("tool", parent=deep[-1]))
    wide = [span("entry"), *(span("other") for _ in range(20_000))]
    for one in wide[1:]:
        one.parent_id = wide[0].span_id
    start = time.perf_counter()
    for spans in (deep, wide):
        find_runs(spans[0], spans)
        branches(spans[0], spans)
        local_trees(spans)
    assert time.perf_counter() - start < 5.0
