"""Causality: what caused what, told by declarations and call ids and never by times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate import Gate, Run, Span, default_gates, judge, load_policy
from spangate._causes.writers import MAX_WRITERS
from spangate.gates import Policy
from spangate.gates.causality import Causality
from spangate.testing import GatedProvider
from tests import recordings
from tests.calls import chat, tool
from tests.spans import run_of, span

ROLES: Mapping[str, Any] = {"p": "generation", "t": "tool", "w": "tool", "r": "other", "s": "other", "o": "other"}
KINDS = {"r": "retry", "s": "summary"}


def graph(*lines: str, inside: Mapping[str, str] | None = None, **attributes: dict[str, Any]) -> dict[str, Span]:
    """Make spans below an agent from lines as ``t1 < p1 p2``: ``t1`` is caused by the others.

    The first letter is the role or kind of a span: prompt, tool, writer (of ``a.py``), retry, summary, other. A line
    without ``<`` declares nothing. ``inside`` gives parents.
    """
    root = span("agent", "agent", end=100.0)
    found = {"root": root}
    parts = [line.partition("<") for line in lines]
    for name in (head.strip() for head, _, _ in parts):
        known: dict[str, Any] = {} if name[0] not in KINDS else {"cause.kind": KINDS[name[0]]}
        known |= {"op": "write", "path": "a.py"} if name[0] == "w" else {}
        found[name] = span(ROLES[name[0]], name, parent=root, attributes={**known, **attributes.get(name, {})})
    for child, parent in (inside or {}).items():
        found[child].parent_id = found[parent].span_id
    for head, sign, causes in parts:
        if sign:
            ids = [found[cause].hex_id if cause in found else cause for cause in causes.split()]
            made: Any = found[head.strip()].attributes
            made["caused_by"] = ids
    return found


def run(*lines: str, **more: Any) -> Run:
    return run_of(list(graph(*lines, **more).values()))


def found_in(given_: Run, **settings: Any) -> list[str]:
    """Return the failing findings as ``code name``."""
    findings = Causality(**settings)(given_)
    return [f"{f.code.partition('.')[2]} {f.span.name if f.span else ''}" for f in findings if f.level is None]


FINDS = [
    pytest.param(run("p1 < t1", "t1 < p1"), {}, ["cycle p1"], id="two cause each other"),
    pytest.param(run("p1 < p3", "p2 < p1", "p3 < p2"), {}, ["cycle p1"], id="three in a circle"),
    pytest.param(run("p1 < p1"), {}, ["cycle p1"], id="its own cause"),
    pytest.param(run("p1 < t1", "t1", inside={"t1": "p1"}), {}, ["cycle p1"], id="caused by its own child"),
    pytest.param(run("p1 < p2", "p2 < p1", "p3 < p4", "p4 < p3"), {}, ["cycle p1", "cycle p3"], id="two circles"),
    pytest.param(run("p1 < deadbeef"), {}, ["missing_cause p1"], id="a cause that is not here"),
    pytest.param(run("p1", "t1 < p1 nonsense"), {}, ["missing_cause t1"], id="a cause that is no id"),
    pytest.param(run("p1", "t1 <"), {}, ["tool_without_prompt t1"], id="a tool that nothing caused"),
    pytest.param(run("p1", "t1 < p1", "t2 < t1"), {}, ["tool_without_prompt t2"], id="a tool caused by a tool"),
    pytest.param(run("r1 <"), {}, ["retry_without_origin r1"], id="a retry of nothing"),
    pytest.param(run("r1"), {}, ["retry_without_origin r1"], id="a retry that names nothing"),
    pytest.param(run("o1", "r1 < o1"), {}, ["retry_without_origin r1"], id="a retry of something else"),
    pytest.param(
        run("p1", "t1 < p1", "s1 < t1"), {}, ["summary_incomplete s1"], id="a summary that leaves its prompt out"
    ),
    pytest.param(
        run("p1", "t1 < p1", "p2 < t1", "s1 < p2"), {}, ["summary_incomplete s1"], id="a prompt before the last one"
    ),
    pytest.param(run("o1", "s1 < o1"), {}, ["summary_incomplete s1"], id="a summary of no prompt"),
    pytest.param(run("p1", "w1 < p1", "w2 < p1"), {}, ["unordered_writers w1"], id="two writers side by side"),
    pytest.param(run("p1", "p2", "w1 < p1", "w2 < p2"), {}, ["unordered_writers w1"], id="two writers of two prompts"),
    pytest.param(
        run("p1", "w1 < p1", "t2 < p1", w1={}, t2={"op": "delete", "path": "./b/../a.py"}),
        {},
        ["unordered_writers w1"],
        id="another spelling of the path",
    ),
    pytest.param(
        run("p1", "w1 < p1", "w2 < p1"), {"commutative": ["w1"]}, ["unordered_writers w1"], id="one of them commutes"
    ),
    pytest.param(
        run("p1", "t1 < p1", "t2 < p1", "w1", "w2", inside={"w1": "t1", "w2": "t2"}),
        {},
        ["unordered_writers w1"],
        id="writers stand for the calls around them",
    ),
]
STAYS_SILENT = [
    pytest.param(run("p1", "t1 < p1", "p2 < t1", "t2 < p2", "s1 < p1 p2"), {}, id="a sound run"),
    pytest.param(run("p1", "t1 < p1", "r1 < t1", "t2 < r1"), {}, id="a tool that a retry caused"),
    pytest.param(run("p1", "r1 < p1"), {}, id="a prompt that is retried"),
    pytest.param(
        run("p1", "t1 < p1", "t2 < t1", "t3 < t2", t2={"cause.kind": "retry"}, t3={"cause.kind": "retry"}),
        {},
        id="retries that are the tools themselves, one of another",
    ),
    pytest.param(run("p1", "s1 < p1", "p2 < s1", "s2 < s1 p2"), {}, id="a summary answers for what it sums up"),
    pytest.param(run("p1", "w1 < p1", "p2 < w1", "w2 < p2"), {}, id="writers in a row"),
    pytest.param(
        run("p1", "w1 < p1", "o1 < w1", "o2 < o1", "o3 < o2", "w2 < o3 p1"), {}, id="writers in a row, by a long way"
    ),
    pytest.param(run("p1", "w1 < p1", "w2 < p1", inside={"w2": "w1"}), {}, id="one writer inside the other"),
    pytest.param(run("p1", "t1 < p1", "w1", "w2", inside={"w1": "t1", "w2": "t1"}), {}, id="two writers of one call"),
    pytest.param(run("p1", "w1 < p1", "w2 < p1"), {"commutative": ("w1", "w2")}, id="writers that commute"),
    pytest.param(run("p1", "w1 < p1", "w2 < p1", w2={"op": "read"}), {}, id="a reader"),
    pytest.param(run("p1", "w1 < p1", "w2 < p1", w2={"path": "b.py"}), {}, id="another path"),
    pytest.param(run("p1", "t1 < p1", "w1", "w2"), {}, id="writers that declare nothing"),
    pytest.param(run("t1", "p1 <"), {}, id="a tool that declares nothing"),
    pytest.param(run("p1", "t1 < p1", "o1 < t1 p1"), {}, id="anything may have any cause"),
]


@pytest.mark.parametrize(("given_", "settings", "codes"), FINDS)
def test_finds(given_: Run, settings: dict[str, Any], codes: list[str]) -> None:
    assert found_in(given_, **settings) == codes


@pytest.mark.parametrize(("given_", "settings"), STAYS_SILENT)
def test_stays_silent(given_: Run, settings: dict[str, Any]) -> None:
    assert found_in(given_, **settings) == []


class TestDeclarations:
    @pytest.mark.parametrize(
        "written",
        [
            lambda hex_id: [hex_id],
            lambda hex_id: hex_id,
            lambda hex_id: f"prompt:{hex_id}",
            lambda hex_id: f'["{hex_id}"]',
            lambda hex_id: (f"0x{hex_id.lstrip('0')}",),
            lambda hex_id: [hex_id.upper(), f"prompt:{hex_id}"],
            lambda hex_id: f"{hex_id}, {hex_id}",
        ],
    )
    @pytest.mark.parametrize("key", ["caused_by", "agent.caused_by"])
    def test_how_causes_may_be_written(self, key: str, written: Callable[[str], Any]) -> None:
        spans = graph("p1", "t1")
        spans["t1"].attributes = {key: written(spans["p1"].hex_id)}
        assert found_in(run_of([*spans.values()])) == []

    @pytest.mark.parametrize("written", [5, [None], [["x"]], "", [b"1"], ["prompt:"], {"a": 1}])
    def test_what_is_no_cause_is_missing_or_none_and_never_an_error(self, written: Any) -> None:
        spans = graph("p1", "t1")
        spans["t1"].attributes = {"caused_by": written}
        assert found_in(run_of([*spans.values()])) in (["missing_cause t1"], ["tool_without_prompt t1"])

    def test_a_kind_that_is_named_with_the_cause_counts_where_the_cause_has_none(self) -> None:
        spans = graph("o1", "t1")
        spans["t1"].attributes = {"caused_by": [f"prompt:{spans['o1'].hex_id}"]}
        assert found_in(run_of([*spans.values()])) == []

    def test_and_not_where_it_is_something_else(self) -> None:
        spans = graph("p1", "t1 < p1", "t2")
        spans["t2"].attributes = {"caused_by": [f"prompt:{spans['t1'].hex_id}"]}
        assert found_in(run_of([*spans.values()])) == ["tool_without_prompt t2"]

    def test_a_kind_of_somebody_elses_is_no_declaration(self) -> None:
        findings = list(Causality()(run("o1", o1={"kind": "retry"})))
        assert [f.code for f in findings] == ["causality.not_evaluable"]

    def test_a_cause_in_another_trace_of_the_run_is_found(self) -> None:
        spans = graph("p1", "t1 < p1")
        spans["t1"].trace_id += 1
        assert found_in(run_of([*spans.values()])) == []

    def test_a_finding_says_which_spans(self) -> None:
        spans = graph("p1 < t1", "t1 < p1")
        [finding] = Causality()(run_of([*spans.values()]))
        assert finding.detail == (
            f"'p1' ({spans['p1'].hex_id}), 't1' ({spans['t1'].hex_id}): each causes the next, and the last the first"
        )

    def test_a_run_that_declares_nothing_is_not_evaluable(self) -> None:
        [finding] = Causality()(run("p1", "t1"))
        assert (finding.code, finding.level) == ("causality.not_evaluable", "not_evaluable")
        assert finding.detail == "no span declares what caused it (caused_by)"

    @pytest.mark.parametrize("wrong", [["write_file"], {"write_file": 1}])
    def test_writers_that_are_no_table_are_refused(self, wrong: Any) -> None:
        with pytest.raises(ValueError, match=r"writers is .*: write a mapping from a tool's name"):
            Causality(writers=wrong)

    def test_one_text_is_no_collection_of_names(self) -> None:
        with pytest.raises(TypeError, match=r"commutative wants a collection of names, as \('w1',\)"):
            Causality(commutative="w1")

    def test_a_policy_file_reaches_the_settings(self, tmp_path: Path) -> None:
        path = tmp_path / "gates.toml"
        path.write_text('[causality]\ncommutative = ["w1", "w2"]\nwriters = { write_file = "path" }\n')
        gate = next(gate for gate in load_policy(path) if isinstance(gate, Causality))
        assert gate.writers == {"write_file": "path"}
        assert list(gate(run("p1", "w1 < p1", "w2 < p1"))) == []


WRITERS = {"write_file": "path"}


def framework(*turns: Sequence[str], more: Sequence[Span] = ()) -> Run:
    """Make a run of a framework whose model asks for calls turn by turn, each of which writes the same file."""
    root = span("agent", "agent", end=100.0)
    spans, answered = [root], list[str]()
    for at, calls in enumerate(turns):
        spans.append(chat(root, at, asked=[(one, "write_file") for one in calls], received=answered))
        spans += [tool(root, at + 0.6, "write_file", one, '{"path": "a.py"}') for one in calls]
        answered = [*answered, *calls]
    return run_of([*spans, *(replace(one, parent_id=root.span_id) for one in more)])


def declared() -> Span:
    known = span("generation", "declares")
    return replace(known, attributes={"caused_by": []})


class TestDerived:
    def test_calls_of_one_answer_are_unordered_and_that_alone_fails_no_run(self) -> None:
        run_ = framework(["c1", "c2"])
        _, gap = Causality(writers=WRITERS)(run_)
        assert (gap.code, gap.level) == ("causality.unordered_writers", "not_evaluable")
        assert "causes derived from call ids" in gap.detail
        for policy in (Policy(), Policy(levels={"causality.unordered_writers": "fail"})):
            assert judge(run_, [Causality(writers=WRITERS), policy]).passed

    def test_where_a_span_declares_they_fail_and_are_called_derived(self) -> None:
        [finding] = Causality(writers=WRITERS)(framework(["c1", "c2"], more=[declared()]))
        assert (finding.code, finding.level) == ("causality.unordered_writers", None)
        assert "causes derived from call ids" in finding.detail

    def test_calls_of_answers_that_follow_each_other_are_in_order(self) -> None:
        assert list(Causality(writers=WRITERS)(framework(["c1"], ["c2"], ["c3"], more=[declared()]))) == []

    def test_ids_that_every_turn_numbers_anew_tell_nothing(self) -> None:
        [finding] = Causality(writers=WRITERS)(framework(["c1"], ["c1"], more=[declared()]))
        assert finding.level == "not_evaluable"
        assert "2 spans, of which 2 have no known cause" in finding.detail

    def test_a_prompt_that_call_ids_tell_of_is_enough_for_a_tool(self) -> None:
        run_ = framework(["c1"])
        called = run_.of_role("tool")[0]
        called.attributes = {**called.attributes, "caused_by": []}
        assert list(Causality()(run_)) == []

    def test_two_instrumentations_of_one_call_ask_once(self) -> None:
        run_ = framework(["c1", "c2"], more=[declared()])
        asked = run_.of_role("generation")[0]
        inner = replace(asked, span_id=1 << 50, parent_id=asked.span_id)
        [finding] = Causality(writers=WRITERS)(run_of([*run_.spans, inner]))
        assert (finding.code, finding.level) == ("causality.unordered_writers", None)

    @pytest.mark.parametrize("name", [name for name in recordings.names() if name.endswith("/basic")])
    def test_recorded_runs_that_declare_nothing_are_not_evaluable(self, name: str) -> None:
        for one in recordings.spans(name)[:1]:
            run_ = run_of(recordings.spans(name), root=one)
            assert [f.code for f in Causality()(run_)] == ["causality.not_evaluable"]


def codes(run_: Run, gate: Gate) -> list[tuple[str, int | None, str]]:
    return [(f.code, f.span.span_id if f.span else None, f.detail) for f in gate(run_)]


NODES = st.integers(2, 12)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Span], list[tuple[int, int]]]:
    """Draw spans of any role without parents, and edges from earlier ones to later ones: no circle."""
    count = draw(NODES)
    roles = draw(st.lists(st.sampled_from("ptwo"), min_size=count, max_size=count))
    possible = [(cause, effect) for effect in range(count) for cause in range(effect)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True, max_size=30))
    attributes: list[dict[str, Any]] = [{"op": "write", "path": "a.py"} if role == "w" else {} for role in roles]
    spans = [span(ROLES[role], f"{role}{number}", attributes=attributes[number]) for number, role in enumerate(roles)]
    for number, made in enumerate(attributes):
        made["caused_by"] = [spans[cause].hex_id for cause, effect in edges if effect == number]
    return spans, edges


def reaches(edges: Sequence[tuple[int, int]], start: int) -> set[int]:
    found = {start}
    todo = [start]
    while todo:
        at = todo.pop()
        further = {effect for cause, effect in edges if cause == at} - found
        found |= further
        todo += further
    return found


class TestLaws:
    @given(graphs())
    def test_a_graph_without_a_circle_has_none_found(self, drawn: tuple[list[Span], list[tuple[int, int]]]) -> None:
        assert "causality.cycle" not in {code for code, *_ in codes(run_of(drawn[0]), Causality())}

    @given(graphs(), st.data())
    def test_one_edge_back_is_found(self, drawn: tuple[list[Span], list[tuple[int, int]]], data: st.DataObject) -> None:
        spans, edges = drawn
        late = data.draw(st.integers(0, len(spans) - 1))
        early = data.draw(st.sampled_from([one for one in range(len(spans)) if late in reaches(edges, one)]))
        spans[early].attributes["caused_by"].append(spans[late].hex_id)
        [finding] = [f for f in Causality()(run_of(spans)) if f.code == "causality.cycle"]
        assert finding.span is not None
        assert spans[early].hex_id in finding.detail or finding.span is spans[early]

    @given(graphs(), st.randoms(use_true_random=False), st.lists(st.integers(0, 1 << 62), min_size=24, max_size=24))
    def test_neither_times_nor_the_order_of_spans_count(
        self, drawn: tuple[list[Span], list[tuple[int, int]]], random: Any, times: list[int]
    ) -> None:
        spans, edges = drawn
        if edges and random.random() < 0.5:
            spans[edges[0][0]].attributes["caused_by"].append(spans[edges[0][1]].hex_id)
        expected = codes(run_of(spans), Causality())
        moved = [
            replace(one, start_ns=times[number], end_ns=times[number + 12], dialect=None)
            for number, one in enumerate(spans)
        ]
        by_clock = sorted(moved, key=lambda one: one.start_ns)
        random.shuffle(moved)
        assert codes(run_of(by_clock), Causality()) == expected
        assert codes(run_of(moved), Causality()) == expected

    @given(graphs())
    def test_writers_are_unordered_if_neither_reaches_the_other(
        self, drawn: tuple[list[Span], list[tuple[int, int]]]
    ) -> None:
        spans, edges = drawn
        writers = [number for number, one in enumerate(spans) if one.name.startswith("w")]
        pairs = [
            (one, other)
            for place, one in enumerate(writers)
            for other in writers[place + 1 :]
            if other not in reaches(edges, one) and one not in reaches(edges, other)
        ]
        found = [f.detail for f in Causality()(run_of(spans)) if f.code == "causality.unordered_writers"]
        assert len(found) == bool(pairs)
        if len(pairs) > 1:
            assert found[0].endswith(f"; {len(pairs)} such pairs")

    @given(graphs())
    def test_a_summary_names_every_prompt_that_leads_to_it(
        self, drawn: tuple[list[Span], list[tuple[int, int]]]
    ) -> None:
        spans, edges = drawn
        last = len(spans) - 1
        spans[last].attributes = {**spans[last].attributes, "cause.kind": "summary"}
        named = {cause for cause, effect in edges if effect == last}
        leading = {one for one in range(last) if last in reaches(edges, one) and spans[one].role == "generation"}
        found = [f for f in Causality()(run_of(spans)) if f.code == "causality.summary_incomplete"]
        is_complete = leading <= named and bool(leading)
        assert found == [] if is_complete else len(found) == 1


class TestBounds:
    def test_many_spans_with_few_writers_take_little_time_each(self) -> None:
        root = span("agent", "agent", end=None)
        spans = [root]
        for number in range(100_000):
            made: dict[str, Any] = {"caused_by": [spans[-1].hex_id]} if number else {}
            if number % 25_000 == 1:
                made |= {"op": "write", "path": "a.py"}
            spans.append(span("other", "o", parent=root, attributes=made))
        started = time.process_time()
        assert list(Causality()(run_of(spans))) == []
        assert (time.process_time() - started) / len(spans) < 100e-6  # a tenth of it here; quadratic would be hours

    def test_of_very_many_writers_of_one_path_the_order_is_not_looked_at(self) -> None:
        lines = [f"w{number} < p1" for number in range(MAX_WRITERS + 1)]
        [finding] = Causality()(run("p1", *lines))
        assert finding.level == "not_evaluable"
        assert finding.detail == "'a.py' is written by 1,025 spans: the order of more than 1,024 is not looked at"

    def test_a_long_chain_of_causes_is_no_recursion(self) -> None:
        spans = [span("generation", "p")]
        for _ in range(20_000):
            spans.append(span("generation", "p", attributes={"caused_by": [spans[-1].hex_id]}))
        spans[0].attributes = {"caused_by": [spans[-1].hex_id]}
        [finding] = Causality()(run_of(spans))
        assert finding.code == "causality.cycle"
        assert "19,993 more" in finding.detail


AGENT: Mapping[str, Any] = {"gen_ai.operation.name": "invoke_agent"}
CHAT: Mapping[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.usage.input_tokens": 1,
    "gen_ai.usage.output_tokens": 1,
}
TOOL: Mapping[str, Any] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "write_file",
    "op": "write",
    "path": "a.py",
}


def through_the_gate(*, in_order: bool) -> GatedProvider:
    """Have an agent write a file twice: the second time because of the first, or side by side."""

    def started(name: str, known: Mapping[str, Any], *causes: Any) -> Any:
        ids = [format(cause.get_span_context().span_id, "016x") for cause in causes]
        return tracer.start_span(name, attributes={**known, **({"caused_by": ids} if ids else {})})

    with GatedProvider() as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            asked = started("chat m", CHAT)
            asked.end()
            first = started("execute_tool write_file", TOOL, asked)
            first.end()
            again = started("chat m", CHAT, first)
            again.end()
            started("execute_tool write_file", TOOL, again if in_order else asked).end()
    return provider


def test_through_the_gate() -> None:
    sound = through_the_gate(in_order=True)
    sound.assert_released()
    assert sound.verdicts[0].gates["causality"] == "pass"
    through_the_gate(in_order=False).assert_refused("causality.unordered_writers")


def test_a_run_without_declarations_passes_the_default_gates() -> None:
    with GatedProvider() as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            tracer.start_span("chat m", attributes=CHAT).end()
    provider.assert_released()
    assert provider.verdicts[0].gates["causality"] == "not_evaluable"
    assert any(isinstance(gate, Causality) for gate in default_gates())
