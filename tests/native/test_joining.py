"""What carries the id of a run belongs to it, whatever its trace: threads, queues, fresh traces, programs."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, context, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import spangate
from spangate import default_gates, process
from spangate._native.agent_run import AgentRun
from spangate.gates import Fingerprints, Forest, Policy
from spangate.process import Receiver
from tests.live.gated import LONG, LOOKS, Gated, Stepped, local, said
from tests.live.test_races import just_before

CHILD = [sys.executable, str(Path(__file__).with_name("child.py"))]
SPLIT = "fail forest.multiple_roots forest.multiple_trace_ids"
W3C = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
"""Not the global one, which others may have replaced."""
WHOLE = Policy(levels={"forest.multiple_roots": "warn", "forest.multiple_trace_ids": "warn"})


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Gated.made:
        Gated.made.pop().gate.shutdown()


@contextmanager
def loop(gated: Gated, **settings: Any) -> Iterator[AgentRun]:
    """A healthy loop of one iteration, inside which a test does something."""
    with spangate.run("a goal", max_iters=1, tracer_provider=gated, **settings) as run:
        for it in run.iterations():
            with it.tool("look"):
                yield run
        run.halt("done")


def carrying(run_id: str) -> Context:
    """A context that knows the run and no span of it."""
    return baggage.set_baggage("spangate.run_id", run_id, Context())


def start(gated: Gated, what: Any, run_id: str, name: str | None = None) -> trace.Span:
    """Start a span in a trace of its own that carries a run id."""
    tracer = gated.get_tracer("app")
    return tracer.start_span(name or f"fresh {what}", carrying(run_id), attributes=LOOKS[what])


def elsewhere(task: Callable[[], None]) -> None:
    thread = threading.Thread(target=task)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def verdict(gated: Gated) -> spangate.Verdict:
    """The only verdict."""
    gated.until(lambda: gated.flush() and gated.verdicts)
    (found,) = gated.verdicts
    return found


GATES = [gate for gate in default_gates() if not isinstance(gate, Fingerprints)]
"""Nobody needs to know here what a model was asked."""


def made(**settings: Any) -> Gated:
    """Return a provider for runs that ask no model."""
    return Gated(gates=GATES, **settings)


def test_a_fresh_trace_that_carries_the_run_splits_it() -> None:
    gated = made()
    with loop(gated) as run:
        start(gated, "tool", run.run_id).end()
    assert said(verdict(gated)) == SPLIT
    assert verdict(gated).run_id == run.run_id
    assert {finding.span.name for finding in verdict(gated).failures if finding.span} == {"fresh tool"}
    assert gated.names == ["refused agent.run"]


def test_so_does_a_thread_that_was_given_the_baggage_alone() -> None:
    gated = made()

    def work(run_id: str) -> None:
        context.attach(carrying(run_id))
        with gated.get_tracer("app").start_as_current_span("invoke_agent helper", attributes=LOOKS["agent"]):
            gated.get_tracer("app").start_span("execute_tool x", attributes=LOOKS["tool"]).end()

    with loop(gated) as run:
        elsewhere(lambda: work(run.run_id))
    assert said(verdict(gated)) == SPLIT
    assert verdict(gated).totals.spans_started == 6


def test_a_queue_that_carries_trace_and_baggage_keeps_the_tree_whole() -> None:
    gated = made()
    jobs: queue.Queue[dict[str, str]] = queue.Queue()

    def worker() -> None:
        inside = W3C.extract(jobs.get(timeout=10))
        tracer = gated.get_tracer("app")
        with tracer.start_as_current_span("handle", inside, kind=SpanKind.CONSUMER):
            tracer.start_span("execute_tool x", attributes=LOOKS["tool"]).end()

    with loop(gated) as run:
        carrier: dict[str, str] = {}
        W3C.inject(carrier)
        jobs.put(carrier)
        elsewhere(worker)
        assert [tree.quick for tree in gated.gate._buffer.held()] == [True]
    assert said(verdict(gated)) == "pass"
    assert verdict(gated).run_id == run.run_id
    assert verdict(gated).totals.spans_started == len(gated.exported) == 6


def test_without_the_baggage_it_is_a_tree_of_its_own() -> None:
    gated = made()
    with loop(gated):
        gated.start("agent", "other").end()
    gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
    assert [said(verdict) for verdict in gated.verdicts] == ["pass", "pass"]


def test_what_is_no_agent_belongs_to_it_as_well() -> None:
    gated = made()
    with loop(gated) as run:
        start(gated, "other", run.run_id).end()
        assert gated.flush()
        assert gated.names == []
    assert said(verdict(gated)) == SPLIT
    assert gated.names == ["refused agent.run"]


def test_a_run_that_may_be_split_leaves_with_all_its_traces_under_one_id() -> None:
    gated = Gated(gates=[*default_gates(), WHOLE])
    with loop(gated) as run:
        for what in ("tool", "other"):
            start(gated, what, run.run_id).end()
    assert said(verdict(gated)).startswith("pass")
    assert sorted(gated.names[:-1]) == ["agent.halt", "agent.iter", "agent.tool", "fresh other", "fresh tool"]
    assert gated.names[-1] == "agent.run"
    assert {(span.attributes or {})["spangate.run_id"] for span in gated.exported} == {run.run_id}


def test_it_is_waited_for_when_the_root_has_ended() -> None:
    gated = made(grace_s=LONG)
    with loop(gated) as run:
        fresh = start(gated, "tool", run.run_id)
    assert not gated.flush(0.05)
    assert gated.verdicts == []
    fresh.end()
    assert said(verdict(gated)) == f"{SPLIT} (completeness.outlived_root)"


def test_what_never_ends_in_it_is_an_open_span_of_the_run() -> None:
    gated = made()
    with loop(gated) as run:
        fresh = start(gated, "tool", run.run_id)
    gated.until(lambda: gated.verdicts)
    assert "completeness.open_span" in said(gated.verdicts[0])
    fresh.end()
    assert gated.flush()
    assert gated.names == ["refused agent.run"]


def test_a_request_that_carries_it_is_part_of_it() -> None:
    gated = made()
    with loop(gated) as run:
        tracer = gated.get_tracer("web")
        tracer.start_span("GET /eggs", carrying(run.run_id), kind=SpanKind.SERVER).end()
        assert gated.flush()
        assert gated.names == []
    assert said(verdict(gated)) == SPLIT


def test_so_is_what_is_below_another_providers_span() -> None:
    gated = made()
    with loop(gated) as run:
        theirs = trace.set_span_in_context(trace.NonRecordingSpan(local(0xABC)), carrying(run.run_id))
        gated.get_tracer("app").start_span("execute_tool x", theirs, attributes=LOOKS["tool"]).end()
    assert said(verdict(gated)) == "fail forest.missing_parent forest.multiple_trace_ids"


def test_two_runs_at_once_each_have_their_own() -> None:
    gated = made()
    with loop(gated) as first:

        def other() -> None:
            with loop(gated, run_id="second"):
                start(gated, "tool", first.run_id).end()

        elsewhere(other)
    gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
    assert {verdict.run_id: said(verdict) for verdict in gated.verdicts} == {first.run_id: SPLIT, "second": "pass"}


def test_nested_it_belongs_to_the_outermost() -> None:
    gated = made()
    with loop(gated) as outer, loop(gated) as inner:
        start(gated, "tool", inner.run_id).end()
    assert said(verdict(gated)) == SPLIT
    assert verdict(gated).run_id == outer.run_id


def test_a_run_in_a_thread_that_carries_another_is_nested_in_it() -> None:
    gated = made()

    def work(run_id: str) -> None:
        context.attach(carrying(run_id))
        with loop(gated) as inner:
            assert inner.run_id == run_id

    with loop(gated) as run:
        elsewhere(lambda: work(run.run_id))
    assert said(verdict(gated)) == SPLIT


def test_in_a_program_of_a_run_every_run_is_a_part_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGATE_RUN_ID", "theirs")
    gated = made()
    with loop(gated) as run:
        assert run.run_id == "theirs"
        start(gated, "tool", run.run_id).end()
    assert said(verdict(gated)) == SPLIT
    assert verdict(gated).run_id == f"theirs-{verdict(gated).root.hex_id}"


def test_an_unknown_run_is_none() -> None:
    gated = made()
    start(gated, "agent", "nobody").end()
    assert said(verdict(gated)) == "pass"
    assert verdict(gated).run_id != "nobody"


class TestBelowARequest:
    """Each topmost agent is a run of its own there."""

    def test_it_has_its_own_id_and_what_carries_it(self) -> None:
        gated = made()
        with gated.get_tracer("web").start_as_current_span("POST /ask", kind=SpanKind.SERVER):
            with loop(gated) as first:
                start(gated, "tool", first.run_id).end()
            with loop(gated) as second:
                pass
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        assert {one.run_id: said(one) for one in gated.verdicts} == {first.run_id: SPLIT, second.run_id: "pass"}

    def test_it_waits_for_what_carries_it(self) -> None:
        gated = made(grace_s=LONG)
        request = gated.get_tracer("web").start_span("POST /ask", kind=SpanKind.SERVER)
        with trace.use_span(request), loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
        assert not gated.flush(0.05)
        fresh.end()
        assert said(verdict(gated)) == f"{SPLIT} (completeness.outlived_root)"
        request.end()
        gated.until(lambda: gated.flush() and "POST /ask" in gated.names)

    def test_what_never_ends_is_an_open_span_of_the_run(self) -> None:
        gated = made()
        with gated.get_tracer("web").start_as_current_span("POST /ask", kind=SpanKind.SERVER), loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
        gated.until(lambda: gated.verdicts)
        assert "completeness.open_span" in said(gated.verdicts[0])
        fresh.end()

    def test_a_queue_keeps_its_tree_whole_there_too(self) -> None:
        gated = made()
        with gated.get_tracer("web").start_as_current_span("POST /ask", kind=SpanKind.SERVER), loop(gated):
            carrier: dict[str, str] = {}
            W3C.inject(carrier)
            tracer = gated.get_tracer("app")
            tracer.start_span("handle", W3C.extract(carrier, Context()), kind=SpanKind.CONSUMER).end()
        assert said(verdict(gated)) == "pass"
        assert verdict(gated).totals.spans_started == 5


class TestAfterTheDecision:
    """The run is known by its id for a while."""

    def test_an_agent_that_carries_it_is_late(self) -> None:
        gated = made()
        with loop(gated) as run:
            pass
        released = verdict(gated)
        start(gated, "agent", run.run_id).end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        late = gated.verdicts[1]
        assert said(late) == "fail forest.late_child"
        assert late.supersedes == released.root.hex_id
        assert (
            late.failures[0].detail
            == f"started after its run had ended and its run {run.run_id} had been decided (pass)"
        )

    def test_what_is_no_agent_follows_a_released_run(self) -> None:
        gated = made()
        with loop(gated) as run:
            pass
        assert verdict(gated).passed
        start(gated, "other", run.run_id).end()
        gated.until(lambda: gated.flush() and "fresh other" in gated.names)
        assert (gated.exported[-1].attributes or {})["spangate.run_id"] == run.run_id

    def test_and_a_refused_one(self) -> None:
        gated = made()
        with loop(gated) as run:
            start(gated, "tool", run.run_id).end()
        assert not verdict(gated).passed
        start(gated, "other", run.run_id, "afterwards").end()
        gated.until(lambda: gated.flush() and not gated.gate._buffer.held())
        assert gated.names == ["refused agent.run"]

    def test_a_message_that_is_handled_later_is_a_tree_of_its_own(self) -> None:
        gated = made()
        carrier: dict[str, str] = {}
        with loop(gated):
            W3C.inject(carrier)
        assert verdict(gated).passed
        tracer = gated.get_tracer("app")
        inside = W3C.extract(carrier, Context())
        tracer.start_span("invoke_agent later", inside, attributes=LOOKS["agent"]).end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        assert said(gated.verdicts[1]) == "pass"


class TestBounds:
    """What carries a run counts as the run."""

    def test_spans(self) -> None:
        gated = made(max_run_spans=6)
        with loop(gated) as run:
            for _ in range(5):
                start(gated, "tool", run.run_id).end()
            gated.until(lambda: gated.verdicts)
        assert "buffer.overflow" in said(gated.verdicts[0])
        assert gated.verdicts[0].run_id == run.run_id

    def test_idleness_is_the_runs(self) -> None:
        gated = made(idle_timeout_s=0.2, grace_s=LONG)
        with loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
            gated.until(lambda: gated.verdicts)
            fresh.end()
        assert gated.verdicts[0].trigger == "idle"
        assert gated.verdicts[0].totals.spans_started == 4
        gated.until(lambda: gated.gate._telemetry.withheld == 5)  # with the halt, which follows
        assert gated.names == ["refused agent.run"]

    def test_a_shutdown_takes_all(self) -> None:
        gated = made()
        with loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
            gated.gate.shutdown()
            fresh.end()
        (only,) = gated.verdicts
        assert only.totals.spans_started == 4
        assert {"completeness.open_span", "completeness.root_open"} <= {finding.code for finding in only.failures}


def test_a_run_of_ones_own_may_own_a_stray_whatever_carries_it() -> None:
    gated = made()
    with loop(gated) as run:
        fresh = start(gated, "agent", run.run_id)
        elsewhere(lambda: gated.start("tool", "lost").end())
        fresh.end()
    assert said(verdict(gated)) == f"{SPLIT} forest.stray_root"


def test_a_run_of_ones_own_may_own_a_stray() -> None:
    gated = made()
    with loop(gated):
        elsewhere(lambda: gated.start("tool", "lost").end())
    assert said(verdict(gated)) == "fail forest.stray_root"


class TestPrograms:
    """A program of the run is told its id."""

    @pytest.fixture(params=[False, True], ids=["without a receiver", "with a receiver"])
    def receiving(self, request: pytest.FixtureRequest) -> bool:
        found: bool = request.param
        return found

    @pytest.fixture
    def gated(self, receiving: bool) -> Iterator[Gated]:  # noqa: FBT001  a fixture
        provider = made(grace_s=2.0, receiver=Receiver() if receiving else None)
        process.instrument(provider)
        yield provider
        process.uninstrument()

    @staticmethod
    def told() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(subprocess.run(CHILD, check=True, capture_output=True, text=True).stdout)
        return told

    def test_and_its_runs_are_named_after_it(self, gated: Gated, receiving: bool) -> None:  # noqa: FBT001  a fixture
        with loop(gated) as run:
            told = self.told()
        assert said(verdict(gated)) == "pass"
        assert (told["environment"], told["run"], *told["grandchildren"]) == (run.run_id,) * 4
        if receiving:
            assert told["verdicts"] == []
            assert verdict(gated).totals.spans_started == 4 + 1 + 2 + 5  # the program, and what it records
        else:
            assert [result for result, _ in told["verdicts"]] == ["pass", "pass"]
            ids = {run_id for _, run_id in told["verdicts"]}
            assert len(ids) == 2
            assert {run_id.partition("-")[0] for run_id in ids} == {run.run_id}

    def test_also_one_that_a_thread_starts_which_knows_the_run_alone(
        self,
        gated: Gated,
        receiving: bool,  # noqa: FBT001  a fixture
    ) -> None:
        told: list[dict[str, Any]] = []

        def work(run_id: str) -> None:
            context.attach(carrying(run_id))
            told.append(self.told())

        with loop(gated) as run:
            elsewhere(lambda: work(run.run_id))
        assert said(verdict(gated)) == SPLIT
        assert (told[0]["environment"], told[0]["run"]) == (run.run_id,) * 2
        assert verdict(gated).totals.spans_started == 4 + 1 + 7 * receiving

    def test_also_below_a_request(self, gated: Gated) -> None:
        with gated.get_tracer("web").start_as_current_span("POST /ask", kind=SpanKind.SERVER), loop(gated) as run:
            told = self.told()
        assert told["environment"] == run.run_id
        assert said(verdict(gated)) == "pass"


class TestMoments:
    """What happens between a look at a run and its decision."""

    @staticmethod
    def gated() -> Stepped:
        return Stepped(settle_s=1.0, grace_s=60.0, gates=GATES)

    def test_a_trace_that_begins_then_is_part_of_the_run(self) -> None:
        gated = self.gated()
        with loop(gated) as run:
            pass
        begun: list[trace.Span] = []
        just_before(gated, "close", lambda: begun.append(start(gated, "tool", run.run_id)))
        gated.look(2.0)
        assert gated.verdicts == []
        begun[0].end()
        gated.look(4.0)
        assert said(gated.verdicts[0]) == SPLIT

    def test_a_span_that_starts_then_in_such_a_trace_is_waited_for(self) -> None:
        gated = self.gated()
        with loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
            fresh.end()
        begun: list[trace.Span] = []
        just_before(gated, "close", lambda: begun.append(gated.start("generation", under=cast("Any", fresh))))
        gated.look(2.0)
        assert gated.verdicts == []
        begun[0].end()
        gated.look(4.0)
        assert "completeness.open_span" not in said(gated.verdicts[0])
        assert gated.verdicts[0].totals.spans_started == 6

    def test_so_is_one_in_a_run_below_a_request(self) -> None:
        gated = self.gated()
        request = gated.start("entry", "POST /ask")
        with trace.use_span(request), loop(gated) as run:
            fresh = start(gated, "tool", run.run_id)
            fresh.end()
        gated.look(0.0)
        begun: list[trace.Span] = []
        just_before(gated, "take", lambda: begun.append(gated.start("generation", under=cast("Any", fresh))))
        gated.look(2.0)
        assert gated.verdicts == []
        begun[0].end()
        for now in (4.0, 6.0):
            gated.look(now)
        assert "completeness.open_span" not in said(gated.verdicts[0])
        assert gated.verdicts[0].totals.spans_started == 6
        request.end()

    def test_a_trace_that_begins_when_a_run_below_a_request_is_taken_is_late(self) -> None:
        gated = self.gated()
        request = gated.start("entry", "POST /ask")
        with trace.use_span(request), loop(gated) as run:
            pass
        gated.look(0.0)
        begun: list[trace.Span] = []
        just_before(gated, "take", lambda: begun.append(start(gated, "agent", run.run_id)))
        gated.look(2.0)
        assert [said(one) for one in gated.verdicts] == ["pass"]
        begun[0].end()
        request.end()
        gated.look(4.0)
        gated.look(6.0)
        assert [said(one) for one in gated.verdicts[1:]] == ["fail forest.late_child"]


def test_threads_that_carry_a_run_lose_nothing_whenever_it_ends() -> None:
    gated = Gated(gates=[*default_gates(), WHOLE], settle_s=0.001, grace_s=5.0)
    rounds, workers, runs = 40, 4, 5

    def work(run_id: str) -> None:
        for _ in range(rounds):
            with gated.get_tracer("app").start_as_current_span("other", carrying(run_id)) as root:
                gated.start("other", under=cast("Any", root)).end()

    for _ in range(runs):
        with loop(gated) as run:
            threads = [threading.Thread(target=work, args=(run.run_id,)) for _ in range(workers)]
            for thread in threads:
                thread.start()
        gated.flush()
        for thread in threads:
            thread.join(10)
    gated.gate.shutdown()
    assert len(gated.verdicts) == runs
    assert gated.gate.losses == {}
    assert len(gated.exported) == runs * (workers * rounds * 2 + 4)
    ids = [span.context.span_id for span in gated.exported]
    assert len(ids) == len({*ids})
    assert {(span.attributes or {})["spangate.run_id"] for span in gated.exported} == {
        verdict.run_id for verdict in gated.verdicts
    }


STEPS = st.lists(st.tuples(st.sampled_from(["open", "close", "child", "flush"]), st.integers(0, 3)), max_size=12)


@given(STEPS, st.booleans())
def test_whatever_happens_in_its_traces_a_run_has_one_verdict_and_no_span_leaves_twice(
    steps: list[tuple[str, int]],
    below_request: bool,  # noqa: FBT001  drawn
) -> None:
    gated = Gated(gates=[Forest(), WHOLE], settle_s=0.0, grace_s=0.0)
    request = gated.get_tracer("web").start_span("POST /ask", kind=SpanKind.SERVER) if below_request else None
    opened: list[trace.Span] = []
    with trace.use_span(request) if request else context_of_nothing(), loop(gated) as run:
        for step, number in steps:
            if step == "open":
                opened.append(start(gated, "tool", run.run_id))
            elif step == "flush":
                gated.gate.force_flush(1000)
            elif opened:
                one = opened[number % len(opened)]
                if step == "close":
                    opened.remove(one)
                    one.end()
                else:
                    inside = trace.set_span_in_context(one)
                    gated.get_tracer("app").start_span("chat", inside, attributes=LOOKS["generation"]).end()
        for one in opened:
            one.end()
    if request:
        request.end()
    assert verdict(gated).run_id == run.run_id
    started = 4 + sum(1 for step, _ in steps if step == "open")
    leaving = [span.context.span_id for span in gated.exported]
    assert len(leaving) == len({*leaving})
    assert verdict(gated).totals.spans_started + bool(request) == len(leaving)
    assert verdict(gated).totals.spans_started >= started
    gated.gate.shutdown()
    Gated.made.clear()


@contextmanager
def context_of_nothing() -> Iterator[None]:
    yield
