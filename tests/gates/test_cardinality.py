"""Cardinality: spans and runs over a size, too many children at once, and evidence that was thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as having
from hypothesis import strategies as st

from spangate import Gate, Run, judge
from spangate._compact.form import compact, compact_bytes
from spangate._payload import span_bytes
from spangate._records import Event, Span
from spangate.gates import Policy
from spangate.gates.cardinality import Cardinality
from tests.spans import SECOND, run_of, span

EXACT = span(attributes={"key": "é" * 3}, events=[Event("e", {"k": "v"})])  # 3 + 6 + 1 + 1 + 1 bytes
HUGE = span(attributes={"gen_ai.input.messages": "x" * (6 << 20)})

FINDS = [
    pytest.param(HUGE, {}, "span_bytes", f"{(6 << 20) + 21} bytes > {4 << 20}", id="a file in a prompt"),
    pytest.param(EXACT, {"max_span_bytes": 11}, "span_bytes", "12 bytes > 11", id="bytes count, not characters"),
    pytest.param(span(attributes={"a": 1}), {"max_span_bytes": 0}, "span_bytes", "9 bytes > 0", id="a ceiling of zero"),
    pytest.param(
        span(dropped_attributes=3),
        {},
        "attributes_dropped",
        "lost 3 attributes to the limits of the SDK: raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, or record less",
        id="attributes",
    ),
    pytest.param(
        span(dropped_events=2, dropped_links=1),
        {},
        "attributes_dropped",
        "lost 2 events, 1 link to the limits of the SDK: "
        "raise OTEL_SPAN_EVENT_COUNT_LIMIT, OTEL_SPAN_LINK_COUNT_LIMIT, or record less",
        id="events and links",
    ),
]
STAYS_SILENT = [
    pytest.param(EXACT, {"max_span_bytes": 12}, id="exactly the ceiling"),
    pytest.param(HUGE, {"max_span_bytes": None}, id="no ceiling"),
    pytest.param(span(), {"max_span_bytes": 0}, id="nothing on it"),
    pytest.param(span(attributes={"a": None, "b": object(), "c": [float("nan")]}), {}, id="odd values"),
]


@pytest.mark.parametrize(("given", "settings", "code", "detail"), FINDS)
def test_finds(given: Span, settings: dict[str, Any], code: str, detail: str) -> None:
    findings = list(Cardinality(**settings)(run_of([given])))
    assert [(f.code, f.span, f.detail, f.level) for f in findings] == [(f"cardinality.{code}", given, detail, None)]


@pytest.mark.parametrize(("given", "settings"), STAYS_SILENT)
def test_stays_silent(given: Span, settings: dict[str, Any]) -> None:
    assert list(Cardinality(**settings)(run_of([given]))) == []


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "4 MiB"])
def test_a_ceiling_that_is_none_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"max_span_bytes is .*: write a whole number"):
        Cardinality(max_span_bytes=wrong)


def native_run(*below: dict[str, Any], **root: Any) -> Run:
    """Make a native run whose spans below the root have these fields."""
    top = span("agent", "agent.run", scope="spangate", end=100.0, attributes=root)
    return run_of([top, *(span(parent=top, scope="spangate", **fields) for fields in below)])


def tool(**attributes: Any) -> dict[str, Any]:
    return {"role": "tool", "name": "agent.tool", "attributes": {"agent.tool": "search", **attributes}}


def model(**attributes: Any) -> dict[str, Any]:
    return {"role": "generation", "name": "agent.llm", "attributes": attributes}


def crowd(times: Sequence[tuple[float, float | None]]) -> Run:
    top = span("agent", "invoke_agent", end=1000.0)
    return run_of(
        [top, *(span("tool", parent=top, start=start, end=end) for start, end in sorted(times, key=lambda one: one[0]))]
    )


NINE = [{"role": "other", "name": "work", "start": number / 10, "end": 50.0} for number in range(9)]
NOTES = {f"note.{number}": "x" * 90 for number in range(10)}
HEAVY = [{"attributes": NOTES, "start": start, "end": start + 1} for start in range(40)]

RUN_FINDS = [
    pytest.param(run_of([EXACT, EXACT]), {"max_run_bytes": 23}, "run_bytes", "24 bytes > 23", id="bytes of a run"),
    pytest.param(
        crowd([(0, 2), (1, 3)]), {"max_open_children": 1}, "fan_out", "children open at once: 2 > 1", id="two"
    ),
    pytest.param(
        crowd([(0, None), (5, 6)]),
        {"max_open_children": 1},
        "fan_out",
        "children open at once: 2 > 1",
        id="one is open",
    ),
    pytest.param(
        crowd([(0, 1)]), {"max_open_children": 0}, "fan_out", "children open at once: 1 > 0", id="no child at all"
    ),
    pytest.param(
        native_run(tool()),
        {"require_results": True},
        "missing_result",
        "the tool ended without a result",
        id="a tool",
    ),
    pytest.param(
        native_run(model(**{"agent.input_hash": "ab"})),
        {"require_results": True},
        "missing_result",
        "the generation ended without a result",
        id="a model call that hashed its input",
    ),
]
RUN_STAYS_SILENT = [
    pytest.param(run_of([EXACT, EXACT]), {"max_run_bytes": 24}, id="exactly the ceiling of a run"),
    pytest.param(crowd([(n, n + 1) for n in range(100)]), {"max_open_children": 1}, id="many, one after the other"),
    pytest.param(crowd([(n, n + 3) for n in range(100)]), {"max_open_children": 3}, id="three at a time"),
    pytest.param(native_run(tool(tool_payload_bytes=0)), {"require_results": True}, id="the size of a result"),
    pytest.param(native_run(tool(**{"gen_ai.tool.call.result": ""})), {"require_results": True}, id="an empty result"),
    pytest.param(native_run(tool(op="write", path="a", after_hash=None)), {"require_results": True}, id="a deletion"),
    pytest.param(native_run(tool(ok=False)), {"require_results": True}, id="a tool that failed has no result"),
    pytest.param(native_run({**tool(), "end": None}), {"require_results": True}, id="a tool that is still open"),
    pytest.param(native_run(model(input_hash="ab", output_hash="cd")), {"require_results": True}, id="both hashes"),
    pytest.param(native_run(model()), {"require_results": True}, id="a model call without hashes"),
]


@pytest.mark.parametrize(("run", "settings", "code", "detail"), RUN_FINDS)
def test_finds_in_a_run(run: Run, settings: dict[str, Any], code: str, detail: str) -> None:
    findings = list(Cardinality(**settings)(run))
    assert [(f.code, f.detail, f.level) for f in findings] == [(f"cardinality.{code}", detail, "fail")]


@pytest.mark.parametrize(("run", "settings"), RUN_STAYS_SILENT)
def test_stays_silent_about_a_run(run: Run, settings: dict[str, Any]) -> None:
    assert [f for f in Cardinality(**settings)(run) if f.level == "fail"] == []


@pytest.mark.parametrize(
    ("run", "code"),
    [
        pytest.param(native_run(*HEAVY), "run_bytes", id="a heavy run"),
        pytest.param(native_run(*NINE), "fan_out", id="nine at once"),
        pytest.param(native_run(tool()), "missing_result", id="no result"),
    ],
)
def test_a_native_run_is_held_to_more_in_strict_alone(run: Run, code: str) -> None:
    gate = Cardinality()
    assert judge(run, [gate]).passed
    strict = judge(run, [gate, Policy(strict=True)])
    assert [finding.code for finding in strict.failures] == [f"cardinality.{code}"]


def test_what_is_declared_holds_in_strict_too() -> None:
    gates: list[Gate] = [Cardinality(max_run_bytes=1 << 20, max_open_children=9), Policy(strict=True)]
    assert judge(native_run(*HEAVY), gates).passed
    assert judge(native_run(*NINE), gates).passed


def test_payloads_weigh_what_is_left_of_them_in_strict() -> None:
    prompt = model(**{"gen_ai.input.messages": "x" * 100_000})
    assert judge(native_run(prompt), [Cardinality(), Policy(strict=True)]).passed


def test_another_run_is_not_held_to_the_strict_bounds() -> None:
    top = span("agent", "invoke_agent cook", scope="spangate.demo", end=100.0)
    run = run_of([top, *(span("tool", parent=top, end=50.0, attributes={"a": "x" * 9000}) for _ in range(9))])
    assert judge(run, [Cardinality(), Policy(strict=True)]).passed


def test_results_can_be_required_of_native_runs_only() -> None:
    run = run_of([span("agent", "invoke_agent cook")])
    [gap] = Cardinality(require_results=True)(run)
    assert (gap.code, gap.level) == ("cardinality.missing_result", "not_evaluable")


def test_the_parent_of_the_crowd_is_named() -> None:
    run = crowd([(0, 2), (1, 3)])
    assert [finding.span for finding in Cardinality(max_open_children=1)(run)] == [run.root]


@having(st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(0, 20)), max_size=12))
def test_as_many_children_are_open_at_once_as_a_look_at_every_start_counts(given: list[tuple[int, int | None]]) -> None:
    times = [(start, None if length is None else start + length) for start, length in given]
    most = max(
        (sum(1 for s, e in times if s <= at and (e is None or e > at)) for at, _ in times),
        default=0,
    )
    lasting = all(end is None or end > start for start, end in times)
    found = [f.detail for f in Cardinality(max_open_children=0)(crowd([*times]))]
    if lasting:
        assert found == ([f"children open at once: {most} > 0"] if times else [])
    else:
        assert len(found) == 1


@having(
    st.dictionaries(
        st.sampled_from(["a", "gen_ai.input.messages", "gen_ai.prompt.0.content", "gen_ai.prompt.1.content", "n"]),
        st.text(max_size=30) | st.integers(),
    ),
    st.text(max_size=30),
)
def test_what_the_compact_form_would_weigh_is_what_it_weighs(attributes: dict[str, Any], described: str) -> None:
    event = Event("exception", {"exception.type": "E", "exception.message": described})
    made = span("generation", scope="spangate", attributes=attributes, events=[event], status_description=described)
    assert compact_bytes(made) == span_bytes(compact(made))


def test_a_crowd_of_many_is_counted_in_little_time() -> None:
    top = span("agent", "invoke_agent", end=None)
    many = [span("tool", parent=top, start_ns=n, end_ns=SECOND * 9) for n in range(100_000)]
    assert [f.detail for f in Cardinality(max_open_children=8)(run_of([top, *many]))] == [
        "children open at once: 100,000 > 8"
    ]
