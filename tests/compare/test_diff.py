"""A rerun is bounded if every change is allowed: the cases that the diff is for, recorded through real providers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from opentelemetry import trace

from spangate import files
from spangate._records import LogRecord, Span
from spangate._run import Run
from spangate.compare import Allowance, diff
from spangate.testing import GatedProvider
from tests.compare.runs import (
    PROMPT,
    TODAY,
    agent,
    call_tool,
    changes,
    chat,
    compared,
    converse,
    loop,
    only,
    opened,
    recorded,
)
from tests.repositories import Workshop

RETRIEVE = ("retrieve", {"q": "span cardinality"})
RETRIEVE_LATER = ("retrieve", {"q": "span cardinality 2024"})
ANSWER = ("answer", {"words": 50})
Record = Callable[..., Run]

both_ways = pytest.mark.parametrize("record", [agent, loop], ids=["framework", "native"])


@both_ways
def test_a_rerun_that_does_the_same_is_bounded(record: Record) -> None:
    found = compared(record([RETRIEVE], [ANSWER]), record([RETRIEVE], [ANSWER]))
    assert (found.bounded, found.changes, found.refusal) == (True, (), None)
    assert [(a.name, b.name) for a, b in found.alignment if a and b] == [
        (span.name, span.name) for span in found.a.of_role("tool")
    ]


@both_ways
def test_a_call_that_is_made_twice_is_added_although_its_arguments_are_equal(record: Record) -> None:
    found = compared(record([RETRIEVE], [ANSWER]), record([RETRIEVE], [RETRIEVE], [ANSWER]))
    assert not found.bounded
    change = only(found)
    assert (change.kind, change.name, change.a) == ("added", "retrieve", None)
    assert change.b is found.b.of_role("tool")[1]
    assert change.digest_b == "1c2bda90ffc8cfc8"


@both_ways
def test_a_changed_query_is_drift_and_names_the_key(record: Record) -> None:
    change = only(compared(record([RETRIEVE], [ANSWER]), record([RETRIEVE_LATER], [ANSWER])))
    assert (change.kind, change.name, change.keys) == ("drift", "retrieve", ("q",))
    assert (change.digest_a, change.digest_b) == ("1c2bda90ffc8cfc8", "8cb33f099e292638")
    assert change.a is not None
    assert change.b is not None


@both_ways
def test_what_is_left_out_is_dropped(record: Record) -> None:
    change = only(compared(record([RETRIEVE], [RETRIEVE], [ANSWER]), record([RETRIEVE], [ANSWER])))
    assert (change.kind, change.name, change.b) == ("dropped", "retrieve", None)


@both_ways
def test_what_is_done_in_another_order_is_reordered(record: Record) -> None:
    found = compared(record([RETRIEVE], [ANSWER]), record([ANSWER], [RETRIEVE]))
    assert [kind for kind, _ in changes(found)] == ["reordered"]


@pytest.mark.parametrize(
    ("expires", "bounded"),
    [
        pytest.param(None, True, id="for good"),
        pytest.param(TODAY, True, id="until today"),
        pytest.param(date(2026, 6, 14), False, id="until yesterday"),
    ],
)
@both_ways
def test_a_change_is_allowed_while_its_entry_is_valid(record: Record, expires: date | None, bounded: object) -> None:
    entry = Allowance(kind="drift", name="retrieve", key="q", reason="new year", expires=expires)
    found = compared(record([RETRIEVE], [ANSWER]), record([RETRIEVE_LATER], [ANSWER]), entry)
    assert found.bounded is bounded
    assert only(found).allowance == (entry if bounded else None)
    assert found.expired == (() if bounded else (entry,))
    assert found.unused == ()


@pytest.mark.parametrize(
    "entry",
    [
        Allowance(kind="drift", name="retrieve", key="limit"),
        Allowance(kind="drift", name="answer"),
        Allowance(kind="added", name="retrieve"),
    ],
    ids=["another key", "another tool", "another class"],
)
def test_an_entry_about_something_else_allows_nothing_and_is_reported(entry: Allowance) -> None:
    found = compared(agent([RETRIEVE], [ANSWER]), agent([RETRIEVE_LATER], [ANSWER]), entry)
    assert (found.bounded, found.unused) == (False, (entry,))


def test_a_drift_of_two_keys_needs_both_to_be_allowed() -> None:
    a, b = agent([("find", {"what": 1, "where": 1, "how": 1})]), agent([("find", {"what": 2, "where": 2, "how": 1})])
    what, where = (Allowance(kind="drift", name="find", key=key) for key in ("what", "where"))
    assert only(compared(a, b)).keys == ("what", "where")
    assert not compared(a, b, what).bounded
    found = compared(a, b, what, where)
    assert (found.bounded, found.unused) == (True, ())


def test_names_of_entries_may_be_patterns() -> None:
    entry = Allowance(kind="added", name="retr*")
    assert compared(agent([ANSWER]), agent([RETRIEVE], [ANSWER]), entry).bounded


def test_an_edge_that_comes_with_an_allowed_call_is_allowed_with_it() -> None:
    a, b = agent([ANSWER]), agent([RETRIEVE], [ANSWER])
    edge = "invoke_agent cook > execute_tool retrieve"
    assert changes(compared(a, b)) == [("added", "retrieve"), ("edge_added", edge)]
    entry = Allowance(kind="added", name="retrieve")
    found = compared(a, b, entry)
    assert [change.allowance for change in found.changes] == [entry, entry]
    assert not compared(a, b, Allowance(kind="edge_added", name=edge)).bounded
    assert changes(compared(b, a, Allowance(kind="dropped", name="retrieve")))[1] == ("edge_dropped", edge)


def test_an_edge_that_stands_elsewhere_as_well_is_not_allowed_with_a_call() -> None:
    def work(provider: GatedProvider) -> None:
        tracer = provider.get_tracer("kitchen")
        with opened(tracer, "invoke_agent cook", "invoke_agent"):
            converse(tracer, [[ANSWER]])
            with tracer.start_as_current_span("job"), tracer.start_as_current_span("helper"):
                pass

    found = compared(agent([ANSWER]), recorded(work), Allowance(kind="added", name="*"))
    assert changes(found) == [("edge_added", "invoke_agent cook > job"), ("edge_added", "job > helper")]
    assert not found.bounded


def test_the_tools_of_one_turn_are_in_no_order() -> None:
    calls = [("look", {"shelf": shelf}) for shelf in range(5)]
    assert compared(agent(calls, [ANSWER]), agent(calls[::-1], [ANSWER])).changes == ()


def test_one_of_several_tools_at_once_drifts() -> None:
    calls = [("look", {"shelf": shelf}) for shelf in range(5)]
    change = only(compared(agent(calls), agent([*calls[3:], ("look", {"shelf": 9}), *calls[:2]])))
    assert (change.kind, change.keys, change.count) == ("drift", ("shelf",), 1)


def test_what_was_asked_for_at_once_may_be_asked_for_in_turn() -> None:
    looks = [("look", {"shelf": shelf}) for shelf in range(3)]
    assert compared(agent(looks), agent([looks[2]], [looks[0], looks[1]])).changes == ()


def test_clocks_have_no_say_where_call_ids_have() -> None:
    a = agent([RETRIEVE], [ANSWER], [RETRIEVE_LATER])
    tools = a.of_role("tool")
    skewed = {span: replace(span, start_ns=span.start_ns - 10**6 * (at + 1)) for at, span in enumerate(tools)}
    b = replace(a, spans=sorted((skewed.get(span, span) for span in a.spans), key=lambda span: span.start_ns))
    assert [span.name for span in b.of_role("tool")] == [span.name for span in tools[::-1]]
    assert compared(a, b).changes == ()


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_tools_of_a_program_that_run_at_once_are_in_no_order(order: tuple[str, str]) -> None:
    def work(provider: GatedProvider) -> None:
        tracer = provider.get_tracer("kitchen")
        both = Barrier(2)

        def call(tool: str, context: Any) -> None:
            with tracer.start_as_current_span(
                f"execute_tool {tool}",
                context,
                attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "{}"},
            ):
                both.wait()

        with opened(tracer, "invoke_agent cook", "invoke_agent"), ThreadPoolExecutor() as pool:
            chat(tracer, PROMPT, [])
            here = trace.set_span_in_context(trace.get_current_span())
            for done in [pool.submit(call, tool, here) for tool in order]:
                done.result()

    first = recorded(work)
    assert compared(first, replace(first, spans=[first.root, *reversed(first.spans[1:])])).changes == ()
    turned = [replace(span, start_ns=5 - at) for at, span in enumerate(first.spans[2:])]
    assert len(turned) == 2
    assert compared(first, replace(first, spans=[*first.spans[:2], *turned])).changes == ()


def helpers(*names: str, calls: Any = (RETRIEVE,)) -> Run:
    """Record an agent that has helpers one after the other, each an agent inside a tool."""

    def work(provider: GatedProvider) -> None:
        tracer = provider.get_tracer("kitchen")
        with opened(tracer, "invoke_agent cook", "invoke_agent"):
            chat(tracer, PROMPT, [])
            for name in names:
                with opened(tracer, f"invoke_agent {name}", "invoke_agent"):
                    converse(tracer, [calls])

    return recorded(work)


def test_each_agent_is_compared_with_itself() -> None:
    a, b = helpers("waiter", "baker"), helpers("waiter", "baker", calls=(RETRIEVE, ANSWER))
    found = compared(a, b)
    added = [(change.kind, change.name, change.agent) for change in found.changes if change.kind == "added"]
    assert added == [("added", "answer", "invoke_agent waiter"), ("added", "answer", "invoke_agent baker")]


def test_agents_in_another_order_are_reordered_and_nothing_in_them() -> None:
    change = only(compared(helpers("waiter", "baker"), helpers("baker", "waiter")))
    assert (change.kind, change.agent) == ("reordered", "invoke_agent cook")


def test_the_calls_of_an_agent_that_is_new_are_added() -> None:
    found = compared(helpers("waiter"), helpers("waiter", "waiter"))
    assert changes(found) == [("added", "retrieve")]


def test_secrets_and_what_always_differs_are_no_drift() -> None:
    a = agent([("find", {"q": "x", "API_KEY": "one", "deep": {"Timestamp": 1}})])
    b = agent([("find", {"q": "x", "API_KEY": "two", "deep": {"Timestamp": 2}})])
    assert compared(a, b).changes == ()
    assert only(compared(a, b, redact=())).keys == ("API_KEY",)
    assert only(compared(a, b, volatile=())).keys == ("deep",)


def test_a_coarse_tool_is_compared_by_name_only() -> None:
    a, b = agent([RETRIEVE], [ANSWER]), agent([RETRIEVE_LATER], [ANSWER])
    assert compared(a, b, coarse=("retr*",)).changes == ()
    assert changes(compared(a, agent([RETRIEVE], [RETRIEVE], [ANSWER]), coarse=("retr*",))) == [("added", "retrieve")]


def unrecorded(**arguments: Any) -> Run:
    """Record an agent whose tool records no arguments, whatever it was called with."""

    def work(provider: GatedProvider) -> None:
        tracer = provider.get_tracer("kitchen")
        with opened(tracer, "invoke_agent cook", "invoke_agent"):
            chat(tracer, PROMPT, [])
            for _ in range(3):
                call_tool(tracer, "look", **arguments)

    return recorded(work)


def test_arguments_that_are_not_recorded_are_not_equal() -> None:
    found = compared(unrecorded(), unrecorded())
    change = only(found)
    assert not found.bounded
    assert (change.kind, change.unknown, change.count) == ("drift", "its arguments are not recorded", 3)
    assert compared(unrecorded(), unrecorded(), coarse=("look",)).bounded
    assert compared(unrecorded(), unrecorded(), Allowance(kind="drift", name="look")).bounded
    assert not compared(
        unrecorded(), unrecorded(arguments={"shelf": 1}), Allowance(kind="drift", name="l", key="a")
    ).bounded


def test_arguments_count_with_which_the_model_asked_for_a_call() -> None:
    def work(shelf: int) -> Run:
        def do(provider: GatedProvider) -> None:
            tracer = provider.get_tracer("kitchen")
            asked = {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"shelf": shelf}}
            with opened(tracer, "invoke_agent cook", "invoke_agent"):
                chat(tracer, PROMPT, [{"role": "assistant", "parts": [asked]}])
                call_tool(tracer, "look", call_id="call_1")

        return recorded(do)

    assert compared(work(1), work(1)).changes == ()
    change = only(compared(work(1), work(2)))
    assert (change.kind, change.keys, change.unknown) == ("drift", ("shelf",), "")


def test_a_native_run_without_content_is_compared_by_hashes() -> None:
    a, b, c = (loop([call, ("list", None)], record_content=False) for call in (RETRIEVE, RETRIEVE, RETRIEVE_LATER))
    assert compared(a, b).changes == ()
    change = only(compared(a, c))
    assert (change.kind, change.keys, change.unknown) == ("drift", (), "")
    bare = loop([("retrieve", None), ("list", None)], record_content=False)
    assert (only(compared(a, bare)).kind, only(compared(a, bare)).unknown) == ("drift", "")


def test_a_run_that_is_not_closed_is_not_diffed() -> None:
    a = agent([RETRIEVE])
    lost = replace(a, spans=[*a.spans[:-1], replace(a.spans[-1], parent_id=77)])
    found = compared(a, lost)
    assert (found.bounded, found.changes) == (False, ())
    assert found.refusal is not None
    assert found.refusal.startswith("B is not closed, and is not diffed: forest.missing_parent at chat small: ")
    left_open = replace(a, spans=[*a.spans[:-1], replace(a.spans[-1], end_ns=None)])
    assert (compared(left_open, a).refusal or "").startswith(
        "A is not closed, and is not diffed: completeness.open_span"
    )


def test_runs_that_asked_for_something_else_are_not_diffed() -> None:
    found = compared(agent([RETRIEVE]), agent([RETRIEVE], prompt=[*PROMPT, *PROMPT]))
    assert found.refusal == "the runs cannot be compared: prompt (the prompt changed: another experiment)"
    assert not found.bounded


def test_only_what_was_meant_to_change_may_differ() -> None:
    a, b = agent([RETRIEVE]), agent([RETRIEVE], model="large")
    assert compared(a, b).refusal == "the runs cannot be compared: model (the model changed: routing)"
    found = compared(a, b, changed="model")
    assert (found.bounded, found.changes) == (True, ())
    assert compared(a, b, changed="prompt").refusal == "the runs cannot be compared: model (the model changed: routing)"
    both = agent([RETRIEVE], model="large", prompt=[*PROMPT, *PROMPT])
    assert compared(a, both, changed="model").refusal == (
        "the runs cannot be compared: beside the model, which was meant to change: "
        "prompt (the prompt changed: another experiment)"
    )
    assert compared(a, a, changed="model").notes == ("the model was meant to change, and did not",)
    with pytest.raises(ValueError, match="changed is 'weather': it may be prompt, tools, model, params"):
        compared(a, b, changed="weather")


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("step 1", "step 22", True),
        ("task 550e8400-e29b-41d4-a716-446655440000", "task 123e4567-e89b-12d3-a456-426614174000", True),
        ("node 00f067aa0ba902b7", "node 53995c3f42cd8ad8", True),
        ("call_4fJq0ZkX91bQw7pTcUdE", "call_9Zk1bQw7pTcUdE4fJq0X", True),
        ("search_v1", "search_v2", False),
        ("read", "write", False),
    ],
)
def test_names_are_compared_without_what_differs_by_itself(before: str, after: str, same: object) -> None:
    def work(name: str) -> Run:
        def do(provider: GatedProvider) -> None:
            tracer = provider.get_tracer("kitchen")
            with opened(tracer, "invoke_agent cook", "invoke_agent"):
                chat(tracer, PROMPT, [])
                with tracer.start_as_current_span(name):
                    pass

        return recorded(do)

    found = compared(work(before), work(after))
    assert (found.changes == ()) is same
    assert len(compared(work(before), work(after), normalise=()).changes) == 2


def test_edges_are_a_set_and_their_numbers_are_told() -> None:
    found = compared(agent([RETRIEVE], [ANSWER]), agent([RETRIEVE], [RETRIEVE], [ANSWER]))
    assert found.recounted == {
        "invoke_agent cook > chat <model>": (3, 4),
        "invoke_agent cook > execute_tool retrieve": (1, 2),
    }
    assert found.roles == {"agent": (1, 1), "generation": (3, 4), "tool": (2, 3)}


def said(span: Span, text: str, **fields: Any) -> LogRecord:
    return LogRecord(span.trace_id, span.span_id, severity_text="INFO", body=text, **fields)


def test_log_records_are_compared_if_asked_for_and_only_those_of_open_spans() -> None:
    a, b = agent([RETRIEVE]), agent([RETRIEVE])
    tool = b.of_role("tool")[0]
    late, lost = said(tool, "late", span_ended=True), LogRecord(7, 7, body="lost")
    a = replace(a, records=[said(tool, "found 3 pages")])
    b = replace(b, records=[said(tool, "found 4 pages"), said(tool, "cache is cold"), late, lost])
    assert compared(a, b).changes == ()
    found = compared(a, b, logs=True)
    change = only(found)
    assert (change.kind, change.name) == ("log_added", "execute_tool retrieve: INFO: cache is cold")
    assert found.faults == ("B: 2 log records could be given to no open span of the run, and are not compared",)
    assert changes(compared(b, a, logs=True)) == [("log_dropped", change.name)]
    assert compared(a, b, Allowance(kind="log_added", name="* cache *"), logs=True).bounded


def test_without_log_records_that_is_said() -> None:
    a = agent([RETRIEVE])
    assert compared(a, a, logs=True).notes == ("neither run has log records, so they are not compared",)


def test_a_file_that_is_written_is_known_by_its_path(tmp_path: Path) -> None:
    repository = Workshop(tmp_path, {"a.txt": "a"})

    def work(path: str) -> Run:
        def do(provider: GatedProvider) -> None:
            files.use_provider(provider)
            try:
                with opened(provider.get_tracer("kitchen"), "invoke_agent cook", "invoke_agent"):
                    chat(provider.get_tracer("kitchen"), PROMPT, [])
                    files.write(repository.root, path, b"data")
            finally:
                files.use_provider(None)

        return recorded(do)

    assert compared(work("a.txt"), work("a.txt")).changes == ()
    assert only(compared(work("a.txt"), work("b.txt"))).keys == ("path",)


def test_today_decides() -> None:
    a, b = agent([ANSWER]), agent([RETRIEVE], [ANSWER])
    entry = Allowance(kind="added", name="retrieve", expires=date(2026, 1, 1))
    assert diff(a, b, allowed=[entry], today=date(2026, 1, 1)).bounded
    assert not diff(a, b, allowed=[entry], today=date(2026, 1, 2)).bounded
