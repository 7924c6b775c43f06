"""Usage: every model call counted once, totals held against what lies below them, bytes of what tools returned."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._records import ABSENT, Finding, Span
from spangate._run import Run
from spangate._usage import count
from tests import recordings
from tests.spans import run_of, span
from tests.usage import ANSWER, FRAMEWORK, agent, call, container, tool

OTHER_TRACE = 0xB0B


def tokens(run: Run) -> tuple[int | None, int | None]:
    usage = count(run)
    return usage.input_tokens, usage.output_tokens


def doubts(run: Run) -> list[str]:
    return sorted(problem.code.removeprefix("budget.") for problem in count(run).problems)


def one_call() -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20)])


def nested_in_a_framework() -> Run:
    """A framework's span around the client's: the same numbers twice."""
    root = agent()
    outer = call(root, 500, 80, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 500, 80)])


def nested_through_other_spans() -> Run:
    root = agent()
    outer = call(root, 500, 80, scope=FRAMEWORK)
    chain = container("workflow", parent=outer)
    request = span("other", "POST", parent=chain)
    return run_of([root, outer, chain, request, call(request, 500, 80)])


def innermost_tells() -> Run:
    """The framework counts the reasoning twice."""
    root = agent()
    outer = call(root, 120, 25, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 120, 20)])


def sides_from_two_spans() -> Run:
    """A stream that was left: the client knows the input, the framework what it got."""
    root = agent()
    outer = call(root, 117, 1, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 117)])


def only_the_inner_one_counts() -> Run:
    root = agent()
    outer = call(root, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 120, 20)])


def three_deep() -> Run:
    root = agent()
    outer = call(root, 9, 9, scope="a")
    middle = call(outer, 100, scope="b")
    return run_of([root, outer, middle, call(middle, answered=20, scope="c")])


def siblings_with_one_answer() -> Run:
    root = agent()
    return run_of([root, call(root, 117, 20, response="m1"), call(root, 117, 20, response="m1", scope="other")])


def sibling_of_a_stack() -> Run:
    """Three instrumentations on one call: two nested without an id below, one beside them."""
    root = agent()
    outer = call(root, 117, 20, response="m1", scope="a")
    return run_of([root, outer, call(outer, 117, 20, scope="b"), call(root, 117, 20, response="m1", scope="c")])


def sibling_inside_a_stack() -> Run:
    """Below the framework's span, which alone knows the output, are two that only their id shows to be one call."""
    root = agent()
    outer = call(root, 117, 20, scope=FRAMEWORK)
    middle = call(outer, 117, scope="b")
    inner = call(middle, 117, response="m1", scope="c")
    return run_of([root, outer, middle, inner, call(outer, 117, response="m1", scope="d")])


def replayed() -> Run:
    """A workflow that was run again after its worker was lost."""
    root = agent()
    first, again = agent(parent=root), agent(parent=root)
    return run_of([root, first, again, *(call(above, 120, 30, response="r1") for above in (first, again))])


def ids_that_are_made_up() -> Run:
    """A test server that answers everything with one id."""
    root = agent()
    return run_of([root, call(root, 100, 20, response="fake"), call(root, 200, 30, response="fake")])


def two_spans_of_one_id() -> Run:
    root = agent()
    first = call(root, 120, 30)
    return run_of([root, first, call(root, 120, 30, span_id=first.span_id)])


def retries_below_one_span() -> Run:
    """The outer span sees one call, the inner ones each attempt."""
    root = agent()
    outer = call(root, 100, 20, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 100, 0, status="ERROR"), call(outer, 100, 20)])


def last_attempt_has_the_outer_id() -> Run:
    root = agent()
    outer = call(root, 100, 20, response="r2", scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 90, 0, response="r1"), call(outer, 100, 20, response="r2")])


def wrapper_in_a_wrapper() -> Run:
    root = agent()
    outer = call(root, 200, 40, scope="a")
    middle = call(outer, 200, 40, scope="b")
    return run_of([root, outer, middle, call(middle, 100, 20), call(middle, 100, 20)])


def below_a_tool(role: Any) -> Run:
    """A call that a tool, or an agent behind it, makes while the outer generation is open."""
    root = agent()
    outer = call(root, 100, 20)
    between = container(role, parent=outer)
    return run_of([root, outer, between, call(between, 7, 3)])


def stray_inside_a_call(given: int = 120) -> Run:
    """An instrumentation that does not activate its spans: the client's span is a trace of its own."""
    root = agent()
    host = call(root, 120, 20, start=1.0, end=5.0, scope=FRAMEWORK)
    stray = call(None, given, 20, start=2.0, end=4.0, trace_id=OTHER_TRACE)
    return run_of([root, host, stray], claimed=[stray])


COUNTED: list[tuple[Callable[[], Run], tuple[int, int], list[str]]] = [
    (one_call, (100, 20), []),
    (nested_in_a_framework, (500, 80), ["double_instrumentation"]),
    (nested_through_other_spans, (500, 80), ["double_instrumentation"]),
    (innermost_tells, (120, 20), ["double_instrumentation"]),
    (sides_from_two_spans, (117, 1), ["double_instrumentation"]),
    (only_the_inner_one_counts, (120, 20), []),
    (three_deep, (100, 20), ["double_instrumentation"]),
    (siblings_with_one_answer, (117, 20), ["double_instrumentation"]),
    (sibling_of_a_stack, (117, 20), ["double_instrumentation"]),
    (sibling_inside_a_stack, (117, 20), ["double_instrumentation"]),
    (replayed, (120, 30), ["replayed_response"]),
    (ids_that_are_made_up, (300, 50), []),
    (two_spans_of_one_id, (120, 30), []),
    (retries_below_one_span, (200, 20), []),
    (last_attempt_has_the_outer_id, (190, 20), ["double_instrumentation"]),
    (wrapper_in_a_wrapper, (200, 40), []),
    (lambda: below_a_tool("tool"), (107, 23), []),
    (lambda: below_a_tool("agent"), (107, 23), []),
    (lambda: below_a_tool("iteration"), (7, 3), ["double_instrumentation"]),
    (stray_inside_a_call, (120, 20), ["double_instrumentation"]),
    (lambda: stray_inside_a_call(121), (241, 40), []),
]


@pytest.mark.parametrize(("make", "counted", "doubted"), COUNTED)
def test_each_call_is_counted_once(make: Callable[[], Run], counted: tuple[int, int], doubted: list[str]) -> None:
    assert tokens(make()) == counted
    assert doubts(make()) == doubted


def test_generations_that_are_each_others_parents_come_to_an_end() -> None:
    root = agent()
    one, two = call(root, 100, 20), call(root, 100, 20)
    one.parent_id, two.parent_id = two.span_id, one.span_id
    alone = call(root, 100, 20)
    alone.parent_id = alone.span_id
    assert tokens(run_of([root, one, two, alone])) == (200, 40)


def test_usage_is_worked_out_once_a_run() -> None:
    run = one_call()
    assert count(run) is count(run)


def test_nothing_is_kept_of_calls_and_tools_that_leave_no_question() -> None:
    """What a verdict's work leaves behind for each span is what the garbage collector walks through in its host."""
    root = agent()
    steps = [container("iteration", parent=root) for _ in range(300)]
    cached = {"gen_ai.usage.cache_read.input_tokens": 64}
    calls = [call(step, 100, 20, response=f"r{at}", attributes=cached) for at, step in enumerate(steps)]
    run = run_of([root, *steps, *calls, *(tool(step, "sunny") for step in steps), *(tool(step) for step in steps)])
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        usage = count(run)
        kept = len(gc.get_objects()) - before
    finally:
        gc.enable()
    assert (len(usage.calls), len(usage.invocations)) == (300, 600)
    assert kept < 60


def failed_without_counts() -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20), call(root, status="ERROR")])


def cancelled_after_the_input() -> Run:
    root = agent()
    stop = {"error.type": "asyncio.exceptions.CancelledError"}
    return run_of([root, call(root, 100, 20), call(root, 50, status="ERROR", attributes=stop)])


def retry_without_counts() -> Run:
    root = agent()
    outer = call(root, 100, 20, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, status="ERROR"), call(outer, 100, 20)])


def silent_call() -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20), call(root, attributes=ANSWER)])


def open_call() -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20), call(root, end=None)])


def unusable_count() -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20), call(root, given=True, answered=20)])


def noted(code: str) -> Run:
    root = agent()
    return run_of([root, call(root, 100, 20)], notes=[Finding(code, root)])


@pytest.mark.parametrize(
    ("make", "known", "silent", "doubted"),
    [
        (failed_without_counts, (100, 20), (0, 0), ["lower_bound"]),
        (cancelled_after_the_input, (150, 20), (0, 0), ["lower_bound"]),
        (retry_without_counts, (100, 20), (0, 0), ["lower_bound"]),
        (silent_call, (100, 20), (1, 1), []),
        (open_call, (100, 20), (1, 1), []),
        (unusable_count, (100, 40), (0, 0), ["usage_invalid"]),
        (lambda: noted("forest.parent_unsampled"), (100, 20), (0, 0), ["lower_bound"]),
        (lambda: noted("forest.stray_generation"), (100, 20), (0, 0), ["lower_bound"]),
        (lambda: run_of([agent(100, 20)]), (0, 0), (0, 0), []),
    ],
)
def test_a_sum_that_is_not_all_is_a_floor_and_no_total(
    make: Callable[[], Run], known: tuple[int, int], silent: tuple[int, int], doubted: list[str]
) -> None:
    usage = count(make())
    assert (usage.input.known, usage.output.known) == known
    assert (len(usage.input.missing), len(usage.output.missing)) == silent
    assert usage.input_tokens is None or usage.output_tokens is None
    assert doubts(make()) == doubted


def test_a_side_of_which_all_is_known_has_a_total() -> None:
    assert tokens(cancelled_after_the_input()) == (150, None)


@pytest.mark.parametrize(
    ("given", "answered", "attributes", "doubted"),
    [
        (0, 0, ANSWER, ["suspicious_zero"]),
        (0, ABSENT, ANSWER, ["suspicious_zero"]),
        ("0", 0.0, ANSWER, ["suspicious_zero", "usage_coerced", "usage_coerced"]),
        (0, 0, {}, []),
        (0, 86, ANSWER, []),
        (412, 0, ANSWER, []),
        (0, 0, {**ANSWER, "gen_ai.usage.cache_read.input_tokens": 64}, []),
    ],
)
def test_an_answer_for_no_tokens_at_all_is_suspicious(
    given: Any, answered: Any, attributes: dict[str, Any], doubted: list[str]
) -> None:
    root = agent()
    assert doubts(run_of([root, call(root, given, answered, attributes=attributes)])) == doubted


def rollup(total: tuple[Any, Any], *calls: tuple[Any, Any], role: Any = "agent", **fields: Any) -> Run:
    root = container(role, *total, **fields)
    return run_of([root, *(call(root, *counts) for counts in calls)])


def delegated(total: int, inner_total: Any = 30, role: Any = "agent") -> Run:
    """An agent with one call of its own (100) and an agent behind a tool with one (30)."""
    root = agent(total)
    between = tool(root)
    inner = container(role, inner_total, parent=between)
    return run_of([root, call(root, 100, 20), between, inner, call(inner, 30, 5)])


def stacked_below(total: int) -> Run:
    """The framework counts 25 for the call, the client 20."""
    root = agent(120, total, scope=FRAMEWORK)
    outer = call(root, 120, 25, scope=FRAMEWORK)
    return run_of([root, outer, call(outer, 120, 20)])


def cached_below(total: int) -> Run:
    root = agent(total)
    return run_of(
        [root, call(root, 10, 5, attributes={"gen_ai.usage.cache_read.input_tokens": 1000}), call(root, 50, 5)]
    )


def late_below() -> Run:
    root = agent(100, 20, end=5.0)
    return run_of([root, call(root, 100, 20), call(root, 7, 3, start=6.0, end=7.0)])


def steps(first: int, second: int) -> Run:
    root = agent(300)
    one, two = container("iteration", first, parent=root), container("iteration", second, parent=root)
    return run_of([root, one, call(one, 100, 20), two, call(two, 200, 20)])


ROLLUPS: list[tuple[Callable[[], Run], list[str]]] = [
    (lambda: rollup((300, 50), (100, 20), (200, 30)), []),
    (lambda: rollup((600, 100), (100, 20), (200, 30)), ["rollup_mismatch", "rollup_mismatch"]),
    (lambda: rollup((300, 30), (100, 20), (200, 30)), ["rollup_mismatch"]),
    (lambda: rollup((301, ABSENT), (100, 20), (200, 30)), ["rollup_mismatch"]),
    (lambda: rollup((0, 0), (100, 20)), ["suspicious_zero", "suspicious_zero"]),
    (lambda: rollup((0, 0), (0, 0)), []),
    (lambda: rollup((7, 7), (100, 20), role="workflow"), ["rollup_mismatch", "rollup_mismatch"]),
    (lambda: rollup((7, 7), (100, 20), role="other"), ["rollup_mismatch", "rollup_mismatch"]),
    (lambda: rollup((7, 7), (100, 20), role="tool"), []),
    (lambda: rollup((7, 7), (100, 20), role="entry"), []),
    (lambda: rollup((7, 7), (100, 20), (ABSENT, ABSENT)), []),
    (lambda: rollup((7, 20), (100, 20), (ABSENT, 0)), []),
    (lambda: rollup((7, 7)), []),
    (lambda: rollup(("120", 20), (120, 20)), []),
    (lambda: delegated(130), []),
    (lambda: delegated(100), []),
    (lambda: delegated(100, ABSENT), ["rollup_mismatch"]),
    (lambda: delegated(100, role="workflow"), ["rollup_mismatch"]),
    (lambda: delegated(30), ["rollup_mismatch"]),
    (lambda: stacked_below(20), ["double_instrumentation"]),
    (lambda: stacked_below(25), ["double_instrumentation"]),
    (lambda: stacked_below(45), ["double_instrumentation", "rollup_mismatch"]),
    (lambda: cached_below(1060), []),
    (lambda: cached_below(60), []),
    (lambda: cached_below(2000), ["rollup_mismatch"]),
    (late_below, []),
    (lambda: steps(100, 200), []),
    (lambda: steps(100, 100), ["rollup_mismatch"]),
]


@pytest.mark.parametrize(("make", "doubted"), ROLLUPS)
def test_a_total_is_held_against_the_calls_below_it(make: Callable[[], Run], doubted: list[str]) -> None:
    assert doubts(make()) == doubted


def test_a_wrong_total_is_found_where_it_stands_and_never_added() -> None:
    run = rollup((15_000, 276), (7500, 276))
    assert tokens(run) == (7500, 276)
    assert [(f.span, f.detail) for f in count(run).problems] == [
        (run.root, "says 15000 input tokens where the calls below it used 7500")
    ]


def nested_tools(outer: Any, inner: Any, **ids: Any) -> Run:
    root = agent()
    first = tool(root, outer, call_id=ids.get("outer_id"), name=ids.get("outer_name", "search"))
    return run_of([root, first, tool(first, inner, call_id=ids.get("inner_id"), name=ids.get("inner_name", "search"))])


def tool_that_calls_itself() -> Run:
    """The framework's span has no id, the client's below it has, and so has the call that the tool makes in turn."""
    root = agent()
    outer = tool(root, "1234")
    inner = tool(outer, "1234", call_id="c1")
    return run_of([root, outer, inner, tool(inner, "12", call_id="c2")])


def delegating_tool() -> Run:
    root = agent()
    outer = tool(root, "1234")
    inner = agent(parent=outer)
    return run_of([root, outer, inner, tool(inner, "12")])


def tools(*results: Any, **fields: Any) -> Run:
    root = agent()
    return run_of([root, *(tool(root, result, **fields) for result in results)])


@pytest.mark.parametrize(
    ("make", "size", "silent"),
    [
        pytest.param(lambda: tools("sunny", "été"), 10, 0, id="texts in UTF-8"),
        pytest.param(lambda: tools({"a": 1}, 42), 9, 0, id="structures as JSON"),
        pytest.param(lambda: tools("", ""), 0, 0, id="nothing was returned"),
        pytest.param(lambda: tools("sunny", ABSENT), None, 1, id="one does not say"),
        pytest.param(lambda: tools(ABSENT, status="ERROR"), None, 0, id="one failed"),
        pytest.param(tools, None, 0, id="no tool spans"),
        pytest.param(lambda: tools("x", attributes={"tool_payload_bytes": 1540}), 1540, 0, id="declared"),
        pytest.param(lambda: tools(ABSENT, attributes={"tool_payload_bytes": "1540"}), 1540, 0, id="declared as text"),
        pytest.param(lambda: tools("x", attributes={"tool_payload_bytes": -1}), None, 0, id="declared below zero"),
        pytest.param(lambda: nested_tools("1234", "12", outer_id="c1", inner_id="c1"), 4, 0, id="one id, outermost"),
        pytest.param(lambda: nested_tools(ABSENT, "12", outer_id="c1", inner_id="c1"), 2, 0, id="one id, inner knows"),
        pytest.param(lambda: nested_tools("1234", "12", outer_id="c1"), 4, 0, id="one name, one id"),
        pytest.param(lambda: nested_tools("1234", "12", outer_id="c1", inner_id="c2"), 6, 0, id="two ids"),
        pytest.param(lambda: nested_tools("1234", "12", inner_name="fetch"), 6, 0, id="two names"),
        pytest.param(tool_that_calls_itself, 6, 0, id="an id learned from the inner span"),
        pytest.param(delegating_tool, 6, 0, id="a tool of the agent behind a tool"),
    ],
)
def test_what_tools_returned(make: Callable[[], Run], size: int | None, silent: int) -> None:
    usage = count(make())
    assert usage.tool_payload_bytes == size
    assert len(usage.payload.missing) == silent


@pytest.mark.parametrize(
    ("declared", "code"),
    [(-1, "usage_negative"), (True, "usage_invalid"), (float("nan"), "usage_nonfinite"), ("9", "usage_coerced")],
)
def test_a_declared_size_is_held_to_what_counts_can_be(declared: Any, code: str) -> None:
    assert doubts(tools("x", attributes={"tool_payload_bytes": declared})) == [code]


COUNTS = st.integers(0, 10_000)
CALLS = st.lists(
    st.tuples(COUNTS, COUNTS, st.none() | st.sampled_from(["r1", "r2", "r3"]), st.sampled_from(["a", "b"])), max_size=12
)


@given(CALLS, st.randoms(use_true_random=False))
def test_the_order_of_the_spans_does_not_matter(given_calls: list[Any], order: random.Random) -> None:
    root = agent()
    calls = [call(root, *counts, response=answer, scope=scope) for *counts, answer, scope in given_calls]
    shuffled = order.sample(calls, len(calls))
    assert tokens(run_of([root, *calls])) == tokens(run_of([root, *shuffled]))


@given(CALLS, CALLS)
def test_two_runs_in_one_use_what_they_use_apart(one: list[Any], other: list[Any]) -> None:
    def spans_of(calls: list[Any], prefix: str) -> list[Span]:
        root = agent()
        return [
            root,
            *(call(root, *counts, response=prefix + (answer or ""), scope=scope) for *counts, answer, scope in calls),
        ]

    first, second = spans_of(one, "x"), spans_of(other, "y")
    together = count(run_of([*first, *second]))
    apart = [count(run_of(spans)) for spans in (first, second)]
    assert together.input.known == sum(usage.input.known for usage in apart)
    assert together.output.known == sum(usage.output.known for usage in apart)


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=8), st.integers(1, 4))
def test_stacking_more_instrumentations_on_a_call_changes_nothing(counts: list[tuple[int, int]], depth: int) -> None:
    root = agent()
    spans = [root]
    for pair in counts:
        above = root
        for layer in range(depth):
            above = call(above, *pair, scope=f"layer {layer}")
            spans.append(above)
    assert tokens(run_of(spans)) == (sum(pair[0] for pair in counts), sum(pair[1] for pair in counts))


LABELLED = [row for row in recordings.labels() if row.get("counted")]


@pytest.mark.parametrize("row", LABELLED, ids=[row["path"] for row in LABELLED])
def test_recorded_runs_are_counted_right(row: dict[str, Any]) -> None:
    traces: dict[int, list[Span]] = {}
    for recorded in recordings.spans(row["path"]):
        traces.setdefault(recorded.trace_id, []).append(recorded)
    sums = [tokens(run_of(spans)) for spans in traces.values() if any(each.role == "generation" for each in spans)]
    assert {"input": sum(each[0] or 0 for each in sums), "output": sum(each[1] or 0 for each in sums)} == row["counted"]
    assert all(None not in each for each in sums)
