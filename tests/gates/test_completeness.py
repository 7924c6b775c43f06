"""Completeness: every span ended, no failure is left unsaid, every cited tool is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._records import Event, Finding, Role, Span
from spangate._run import Run
from spangate.gates.completeness import Completeness
from tests.calls import SCOPE, chat, tool
from tests.spans import run_of, span

OPEN = "completeness.open_span"
ROOT_OPEN = "completeness.root_open"
OUTLIVED = "completeness.outlived_root"
RECOVERED = "completeness.recovered_error"
UNRECOVERED = "completeness.unrecovered_error"
CONTROL_FLOW = "completeness.control_flow_error"
CANCELLED = "completeness.cancelled"
CITED = "completeness.cited_tool_missing"
LOST = "completeness.call_lost"
BLIND = "completeness.not_evaluable"


def answers(run: Run) -> tuple[list[Finding], list[Finding]]:
    """What the gate found, and what it could not evaluate."""
    found = list(Completeness()(run))
    gaps = [finding for finding in found if finding.level == "not_evaluable"]
    return [finding for finding in found if finding.level != "not_evaluable"], gaps


def found(run: Run) -> list[tuple[str, str]]:
    return [(finding.code, finding.span.name if finding.span else "") for finding in answers(run)[0]]


def failed(role: Role, name: str | None = None, error: str = "ValueError", **fields: Any) -> Span:
    return span(role, name, scope=SCOPE, status="ERROR", attributes={"error.type": error}, **fields)


def agent(*below: Callable[[Span], Span], **root_fields: Any) -> Run:
    """An agent from 0 s to 10 s and what lies directly below it."""
    root = span("agent", "agent", **{"end": 10.0, "scope": SCOPE, **root_fields})
    return run_of([root, *(make(root) for make in below)])


def child(role: Role, name: str | None = None, *, bad: str | None = None, **fields: Any) -> Callable[[Span], Span]:
    """A span to be put below a root: healthy, or failed with the type ``bad``."""
    if bad is None:
        return lambda root: span(role, name, parent=root, **{"scope": SCOPE, **fields})
    return lambda root: failed(role, name, bad, parent=root, **fields)


def told_on_the_way_up(*roles: Role, error: str = "ValueError", then: float | None = None) -> Run:
    """A failure told again by every span above it but the root; perhaps a generation that starts at ``then``."""
    root = span("agent", "agent", end=10.0, scope=SCOPE)
    spans = [root]
    for role in roles:
        spans.append(failed(role, f"failed {role}", error, parent=spans[-1], start=1, end=2))
    if then is not None:
        spans.append(chat(root, then))
    return run_of(spans)


def parallel_generation() -> Run:
    return agent(child("tool", "t", bad="ValueError", start=1, end=5), child("generation", "chat", start=4, end=6))


def same_call_seen_twice() -> Run:
    """An outer instrumentation failed on an answer that the inner one, which is written later, took for good."""
    one = {"gen_ai.response.id": "r1"}
    outer: dict[str, Any] = {"status": "ERROR", "attributes": {"error.type": "ValueError", **one}}
    return agent(
        child("generation", "outer", start=1, end=2, **outer),
        child("generation", "inner", start=2, end=3, attributes=one),
    )


def generation_below_the_failure() -> Run:
    root = span("agent", "agent", end=10.0)
    helper = failed("agent", "helper", parent=root, start=1, end=2)
    return run_of([root, helper, chat(helper, 3)])


def backdated_generation_last() -> Run:
    """Some generations are written after the answer, with an earlier start: their place in the run says nothing."""
    return agent(
        child("tool", "t", bad="ValueError", start=1, end=2),
        child("generation", "second", start=3, end=4),
        child("generation", "first", start=0.5, end=0.9),
    )


def failure_within_one_tick() -> Run:
    """Seen by a coarse clock, a tool began and ended at the very moment that its step began."""
    root = span("agent", "agent", end=10.0)
    step = span("iteration", "step", parent=root, start=2, end=4)
    return run_of([root, chat(root, 0), step, failed("tool", "t", parent=step, start=2, end=2)])


def program_in(status: str) -> Run:
    """A tool around a program that exits with 1, as the last act of a run."""
    root = span("agent", "agent", end=10.0)
    grep = span("tool", "grep", parent=root, start=3, end=5, status=status, scope=SCOPE)
    return run_of([root, chat(root, 1), grep, failed("process", "rg", "1", parent=grep, start=4, end=4.5)])


def below_a_request(*made: Span) -> Run:
    """Model calls directly below a request handler, which is not of the run: the first of them bears the verdict."""
    for one in made:
        one.parent_id = 0xE0
    return run_of(made)


def cited(*tools: Callable[[Span], Span], asked: int = 1, came_back: int = 1) -> Run:
    return agent(
        lambda root: chat(root, 1, asked=[("c1", "add")] * asked),
        *tools,
        lambda root: chat(root, 3, received=["c1"] * came_back, name="chat later"),
    )


def stray_that_outlives() -> Run:
    root = span("agent", "agent", end=10.0)
    stray = span("tool", "stray", start=1, end=12)
    return run_of([root, stray], claimed=[stray])


FINDS = [
    pytest.param(agent(child("generation", "chat", end=None)), [(OPEN, "chat")], id="a span that never ended"),
    pytest.param(agent(end=None), [(ROOT_OPEN, "agent")], id="a root that never ended"),
    pytest.param(
        agent(child("iteration", "step", end=None), end=None),
        [(ROOT_OPEN, "agent"), (OPEN, "step")],
        id="a root and what it waits for",
    ),
    pytest.param(agent(child("tool", "t", start=9, end=12)), [(OUTLIVED, "t")], id="a span that ended after the root"),
    pytest.param(stray_that_outlives(), [(OUTLIVED, "stray")], id="a stray that ended after the root"),
    pytest.param(told_on_the_way_up("tool", then=3), [(RECOVERED, "failed tool")], id="the model went on"),
    pytest.param(told_on_the_way_up("tool", then=2), [(RECOVERED, "failed tool")], id="it went on at that very moment"),
    pytest.param(
        told_on_the_way_up("workflow", "tool", then=3),
        [(RECOVERED, "failed tool")],
        id="recovered, told at the deepest",
    ),
    pytest.param(backdated_generation_last(), [(RECOVERED, "t")], id="the place among the spans is not the time"),
    pytest.param(
        agent(child("iteration", bad="ValueError"), child("iteration", start=2, end=3)),
        [(RECOVERED, "iteration")],
        id="the next iteration went on",
    ),
    pytest.param(
        told_on_the_way_up("agent", "tool", then=0.5), [(UNRECOVERED, "failed tool")], id="no model call after it"
    ),
    pytest.param(
        told_on_the_way_up("agent", "tool", error="TimeoutError", then=0.5),
        [(UNRECOVERED, "failed tool")],
        id="timeout",
    ),
    pytest.param(told_on_the_way_up("generation"), [(UNRECOVERED, "failed generation")], id="the model call failed"),
    pytest.param(parallel_generation(), [(UNRECOVERED, "t")], id="a model call that began before it was over"),
    pytest.param(same_call_seen_twice(), [(UNRECOVERED, "outer")], id="the same model call seen twice"),
    pytest.param(generation_below_the_failure(), [(UNRECOVERED, "helper")], id="a model call inside what failed"),
    pytest.param(
        agent(child("tool", "t", bad="ValueError"), child("generation", "chat", bad="ValueError", start=2, end=3)),
        [(UNRECOVERED, "t"), (UNRECOVERED, "chat")],
        id="the model call after it failed too",
    ),
    pytest.param(told_on_the_way_up("agent", "tool"), [(UNRECOVERED, "failed agent")], id="no generations: the agent"),
    pytest.param(
        told_on_the_way_up("tool", error="GraphInterrupt"), [(CONTROL_FLOW, "failed tool")], id="a pause for a person"
    ),
    pytest.param(
        told_on_the_way_up("workflow", "generation", error="asyncio.exceptions.CancelledError"),
        [(CANCELLED, "failed generation")],
        id="cancelled",
    ),
    pytest.param(
        agent(
            child("generation", "chat", bad="GeneratorExit"),
            status="ERROR",
            attributes={"error.type": "CancelledError"},
        ),
        [(CANCELLED, "chat")],
        id="the root was cancelled with it",
    ),
    pytest.param(
        agent(child("other", "POST", bad="500"), child("generation", start=-1, end=0)),
        [(RECOVERED, "POST")],
        id="an attempt behind a retry is its caller's affair",
    ),
    pytest.param(
        agent(child("generation", "chat", bad="ValueError"), child("other", "POST", bad="500")),
        [(UNRECOVERED, "chat"), (RECOVERED, "POST")],
        id="an attempt beside a failed call",
    ),
    pytest.param(
        told_on_the_way_up("generation", "other"), [(UNRECOVERED, "failed generation")], id="the caller failed"
    ),
    pytest.param(
        agent(child("agent", "helper", bad="ValueError"), status="ERROR", attributes={"error.type": "CancelledError"}),
        [(CANCELLED, "agent")],
        id="the root was cancelled after a failure",
    ),
    pytest.param(failure_within_one_tick(), [(UNRECOVERED, "t")], id="a step that began in the tick of its failure"),
    pytest.param(program_in("OK"), [(RECOVERED, "rg")], id="a program that exits 1 in a tool that takes it"),
    pytest.param(program_in("ERROR"), [(UNRECOVERED, "rg")], id="a program that exits 1 in a tool that does not"),
    pytest.param(
        below_a_request(failed("generation", "first"), chat(None, 2)),
        [(RECOVERED, "first")],
        id="a model call directly below a request, and a later one",
    ),
    pytest.param(
        cited(lambda root: tool(root, 2, "mul", "c9")), [(CITED, "chat later")], id="a result without a tool span"
    ),
    pytest.param(
        cited(lambda root: tool(root, 2, "add", "c1"), asked=2), [(LOST, "chat")], id="two calls of one id, one ran"
    ),
]

STAYS_SILENT = [
    pytest.param(agent(child("generation"), child("tool")), id="healthy"),
    pytest.param(agent(child("tool", start=1, end=9), child("other", start=2, end=9.5)), id="ends before the root"),
    pytest.param(
        agent(child("other", "publish", kind="PRODUCER", end=2), child("tool", end=10)),
        id="ends together with the root",
    ),
    pytest.param(
        agent(child("tool", bad="ValueError"), status="ERROR", attributes={"error.type": "ValueError"}),
        id="the root says so",
    ),
    pytest.param(
        agent(child("agent", bad="TimeoutError"), status="ERROR", attributes={"error.type": "TimeoutError"}),
        id="the root says that it timed out",
    ),
    pytest.param(
        agent(child("generation", bad="CancelledError"), status="ERROR", attributes={"error.type": "ValueError"}),
        id="a sibling was cancelled when the root failed",
    ),
    pytest.param(agent(child("tool", start=11, end=12)), id="what starts after the root is the forest's to tell"),
    pytest.param(told_on_the_way_up("tool"), id="no generations: a failed tool cannot be judged"),
    pytest.param(told_on_the_way_up("process"), id="no generations: a failed program cannot be judged"),
    pytest.param(below_a_request(failed("generation", "only")), id="a failed model call speaks for itself"),
    pytest.param(
        below_a_request(chat(None, 0.0), failed("generation", "last", start=2, end=3)),
        id="directly below a request each call speaks for itself",
    ),
    pytest.param(
        below_a_request(chat(None, 0.0), chat(None, 2.0), chat(None, 4.0)),
        id="later calls of a request outlive nothing",
    ),
    pytest.param(cited(lambda root: tool(root, 2, "add", "c1")), id="a cited tool"),
    pytest.param(cited(lambda root: tool(root, 2, "add", "c1"), came_back=0), id="a tool that nobody cites"),
]


@pytest.mark.parametrize(("run", "expected"), FINDS)
def test_finds(run: Run, expected: list[tuple[str, str]]) -> None:
    assert found(run) == expected


@pytest.mark.parametrize("run", STAYS_SILENT)
def test_stays_silent(run: Run) -> None:
    assert found(run) == []


def test_a_message_handler_may_outlive_the_root() -> None:
    root = span("agent", "agent", end=10.0)
    publish = span("other", "publish", parent=root, kind="PRODUCER", end=1)
    handler = span("entry", "process", parent=publish, kind="CONSUMER", start=0.5, end=15)
    assert found(run_of([root, publish, handler, chat(handler, 12)])) == []


def test_a_streaming_request_may_end_before_its_model_calls() -> None:
    request = span("entry", "POST /chat", kind="SERVER", end=1.0)
    streams = [chat(request, 0.5, took=2), chat(request, 2)]
    assert found(run_of(streams, root=request)) == []


def test_only_the_topmost_of_what_outlived_the_root_is_named() -> None:
    root = span("agent", "agent", end=10.0)
    late = span("tool", "late", parent=root, end=14)
    assert found(run_of([root, late, span("other", "inside", parent=late, end=13)])) == [(OUTLIVED, "late")]


def test_a_recovered_step_does_not_hide_that_its_agent_failed() -> None:
    root = span("workflow", "workflow", end=10.0)
    helper = failed("agent", "helper", "MaxTurnsExceeded", parent=root, end=9)
    spans = [root, helper, failed("tool", "t", parent=helper, start=1, end=2), chat(helper, 3)]
    assert found(run_of(spans)) == [(UNRECOVERED, "helper"), (RECOVERED, "t")]


def test_failures_are_not_judged_while_the_root_is_open() -> None:
    run = agent(child("tool", bad="ValueError"), child("generation", bad="CancelledError"), end=None)
    assert found(run) == [(ROOT_OPEN, "agent"), (CANCELLED, "generation")]


def test_a_run_of_ended_spans_alone_is_not_evaluable() -> None:
    root = span("agent", "agent")
    findings, gaps = answers(run_of([root, tool(root, 0, "add", "c1")], starts_known=False))
    assert findings == []
    assert gaps[0].code == BLIND


def test_a_failed_tool_without_generations_is_a_gap_that_names_it() -> None:
    _, gaps = answers(told_on_the_way_up("tool"))
    assert [(gap.code, gap.span.name if gap.span else "") for gap in gaps] == [
        (UNRECOVERED, "failed tool"),
        (CITED, ""),
    ]
    assert "1 failed, first with ValueError" in gaps[0].detail


def test_calls_that_cannot_be_checked_are_a_gap() -> None:
    run = agent(
        lambda root: chat(root, 1, asked=[("c1", "transfer_to_bob")]),
        child("tool", "x"),
        lambda root: chat(root, 3, received=["c1"]),
    )
    findings, gaps = answers(run)
    assert findings == []
    assert [gap.code for gap in gaps] == [CITED]
    assert "'transfer_to_bob' (call 'c1'): a hand-off runs no tool" in gaps[0].detail


def test_an_open_span_is_described_by_scope_and_age() -> None:
    ((finding,), _) = answers(agent(child("generation", "chat", start=7.5, end=None)))
    assert "open for at least 2.5 s" in finding.detail
    assert SCOPE in finding.detail
    assert "stream or generator" in finding.detail


def test_a_program_that_still_runs_is_no_stream_to_close() -> None:
    ((finding,), _) = answers(agent(child("process", "python", start=7.5, end=None)))
    assert finding.code == OPEN
    assert "wait for the program or end it" in finding.detail
    assert "stream" not in finding.detail


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"attributes": {"error.type": "openai.APITimeoutError"}}, "openai.APITimeoutError", id="type"),
        pytest.param({"events": [Event("exception", {"exception.type": "KeyError"})]}, "KeyError", id="exception"),
        pytest.param(
            {"attributes": {"error.type": "_OTHER"}, "status_description": "boom!\nTraceback"}, "(boom!)", id="message"
        ),
        pytest.param({"attributes": {"error.type": ["x"]}}, "(no error type recorded)", id="no text"),
        pytest.param({}, "(no error type recorded)", id="nothing"),
    ],
)
def test_a_failure_is_described_by_its_type_and_by_its_message_only_without(fields: dict[str, Any], said: str) -> None:
    ((finding,), _) = answers(agent(child("generation", "chat", scope=SCOPE, status="ERROR", **fields)))
    assert said in finding.detail
    assert "Traceback" not in finding.detail


def test_a_circle_of_parents_ends() -> None:
    root = span("agent", "agent", end=10.0)
    one = failed("tool", "one", parent=root, end=12)
    other = failed("tool", "other", parent=one, end=12)
    one.parent_id = other.span_id
    assert {code for code, _ in found(run_of([root, one, other, chat(root, 1)]))} <= {UNRECOVERED, OUTLIVED}


TREES = st.lists(
    st.tuples(
        st.sampled_from(["agent", "workflow", "generation", "tool", "iteration", "process", "other", "transport"]),
        st.sampled_from([None, "ValueError", "CancelledError", "GraphInterrupt", "TimeoutError"]),
        st.integers(0, 30),
        st.integers(0, 10),
        st.integers(0, 10),
    ),
    max_size=12,
)


def grown(rows: list[tuple[Role, str | None, int, int, int]]) -> list[Span]:
    """A tree: each row is a span below some span before it."""
    spans = [span("agent", "agent", end=10.0, scope=SCOPE)]
    for role, error, above, start, length in rows:
        make = child(role, role, bad=error, start=start, end=start + length)
        spans.append(make(spans[above % len(spans)]))
    return spans


@given(TREES)
def test_a_root_that_failed_leaves_no_failure_below_it_untold(
    rows: list[tuple[Role, str | None, int, int, int]],
) -> None:
    spans = grown(rows)
    spans[0].status = "ERROR"
    assert {code for code, _ in found(run_of(spans))} <= {OUTLIVED}


@given(TREES)
def test_a_healthy_last_word_leaves_no_failure_unrecovered(rows: list[tuple[Role, str | None, int, int, int]]) -> None:
    spans = grown(rows)
    assert UNRECOVERED not in {code for code, _ in found(run_of([*spans, chat(spans[0], 100)]))}


@given(TREES)
def test_a_failure_is_told_once_on_its_way_up(rows: list[tuple[Role, str | None, int, int, int]]) -> None:
    spans = grown(rows)
    run = run_of(spans)
    told: dict[str, list[Span]] = {}
    for finding in answers(run)[0]:
        if finding.code != OUTLIVED and finding.span is not None:
            told.setdefault(finding.code, []).append(finding.span)
    for code, named in told.items():
        if code != RECOVERED:
            assert not any(above in named for one in named for above in run.ancestors(one))
