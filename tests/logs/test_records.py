"""Log records are held with the run whose span they were emitted in, leave with it or stay with it."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import SpanKind, use_span

import spangate
from spangate import Finding, GateLogRecordProcessor, GateSpanProcessor, Run, _processor
from spangate._records import LogRecord
from spangate._verdict.levels import Policy
from spangate.gates import Forest
from tests.live.gated import LONG, Gated, context_of, local, remote
from tests.logs.logged import Logged, LogProbe


def test_a_released_run_leaves_with_its_records_in_their_order() -> None:
    it = Logged()
    with it.logged("agent") as agent:
        with it.logged("generation", under=agent):
            pass
        with it.logged("tool", under=agent):
            pass
        it.log("done", agent)
        assert it.left == []
    assert it.left == ["agent", "generation", "tool", "done"]
    assert (it.logs.joined, it.logs.withheld, it.logs.losses, it.notes) == (4, 0, {}, [])


def test_a_refused_run_leaves_none_of_its_records() -> None:
    it = Logged()
    with it.logged("agent") as agent:
        it.log("leaked", it.start("generation", under=agent))
    it.log("elsewhere")
    assert it.left == ["elsewhere"]
    assert it.verdicts[0].verdict == "fail"
    assert (it.logs.withheld, it.logs.losses) == (2, {})


def test_a_dry_run_refuses_no_record() -> None:
    it = Logged(dry_run=True)
    with it.logged("agent") as agent:
        it.start("generation", under=agent)
    assert it.left == ["agent"]


def test_a_record_of_no_trace_passes_at_once() -> None:
    it = Logged(settle_s=LONG)
    with it.open("agent"):
        it.log("elsewhere")
        it.log("of a request that is traced elsewhere", remote())
        it.log("of a span that a sampler dropped", local(0xACE, sampled=False))
        it.until(lambda: len(it.sent) == 3)


def test_in_a_trace_without_an_agent_records_pass_when_their_spans_do() -> None:
    it = Logged()
    with it.logged("other", "job") as job:
        with it.logged("other", "query", under=job):
            pass
        assert it.left == []
    assert it.left == ["job", "query"]
    assert it.verdicts == []


def test_below_a_request_what_is_no_agent_passes_with_its_part_and_each_run_by_itself() -> None:
    it = Logged()
    with it.logged("entry", "request") as request:
        with it.logged("other", "auth", under=request):
            pass
        assert it.left == ["auth"]
        with it.logged("agent", "good", under=request):
            pass
        with it.logged("agent", "bad", under=request) as bad:
            it.start("generation", under=bad)
        it.until(lambda: len(it.verdicts) == 2 and "good" in it.names)
        it.log("late, of the good one", context_of(it.one("good")))
        it.log("late, of the bad one", context_of(bad))
        assert it.left == ["auth", "good", "late, of the good one"]
        it.log("of no span that is known", local(context_of(request).trace_id))
    assert it.left == ["auth", "good", "late, of the good one", "request", "of no span that is known"]
    assert it.logs.withheld == 2


def test_a_trace_without_an_agent_that_does_not_end_is_let_go_when_it_is_old() -> None:
    it = Logged(max_run_age_s=0.05)
    with it.logged("other", "job") as job:
        it.log("of no span that is known", local(context_of(job).trace_id))
        it.until(lambda: len(it.sent) == 2)
    assert it.logs.losses == {}


@pytest.mark.parametrize(("leaks", "left"), [(False, ["agent", "late"]), (True, [])])
def test_what_comes_after_the_decision_follows_it(leaks: bool, left: list[str]) -> None:  # noqa: FBT001
    it = Logged()
    with it.logged("agent") as agent:
        if leaks:
            it.start("generation", under=agent)
    it.until(lambda: it.verdicts != [])
    it.log("late", agent)
    assert it.left == left


@pytest.mark.parametrize("leaks", [False, True])
def test_late_records_of_a_run_too_large_to_be_remembered_by_ids_follow_it(leaks: bool) -> None:  # noqa: FBT001
    it = Logged()
    with it.open("agent") as agent:
        tools = [it.ended("tool", under=agent) for _ in range(300)]
        if leaks:
            it.start("generation", under=agent)
    it.until(lambda: it.verdicts != [])
    it.log("late", tools[7])
    assert it.left == ([] if leaks else ["late"])


def test_so_do_those_of_a_part_of_a_request_that_goes_on() -> None:
    it = Logged()
    with it.open("entry", "request") as request:
        with it.open("agent", under=request) as agent:
            tools = [it.ended("tool", under=agent) for _ in range(300)]
            it.start("generation", under=agent)
        it.until(lambda: it.verdicts != [])
        it.log("late", tools[7])
    assert (it.left, it.logs.withheld) == ([], 1)


def test_below_a_request_a_record_of_no_known_span_passes_with_the_next_part_that_is_no_run() -> None:
    it = Logged()
    with it.open("entry", "request") as request, it.open("agent", under=request):
        it.log("x", local(context_of(request).trace_id))
        assert it.left == []
        it.ended("other", "auth", under=request)
        assert it.left == ["x"]


def test_records_that_come_while_a_run_is_judged_share_its_fate() -> None:
    def logs(run: Run) -> Iterator[Finding]:
        it.log("meanwhile", run.root.source.context)
        yield Finding("logs_too.much", run.root)

    it: Logged = Logged(gates=[logs])
    with it.logged("agent"):
        pass
    assert (it.left, it.logs.withheld) == ([], 2)


def test_records_of_a_stray_go_with_the_run_that_claims_it() -> None:
    it = Logged()
    with it.logged("agent"), it.logged("tool", "lost"):
        pass
    assert (it.left, it.logs.withheld) == ([], 2)
    assert [record.body for record in it.runs[0].records] == ["agent", "lost"]


def test_the_run_has_its_records_as_data() -> None:
    it = Logged()
    with it.open("agent") as agent:
        fields = {"timestamp": 7, "severity_text": "INFO", "attributes": {"n": 1}, "event_name": "my.event"}
        it.log({"a": [1]}, agent, **fields)
    assert it.flush()
    (record,) = it.runs[0].records
    assert isinstance(record, LogRecord)
    assert (record.trace_id, record.span_id) == (context_of(agent).trace_id, context_of(agent).span_id)
    assert (record.time_ns, record.severity_text, record.event_name) == (7, "INFO", "my.event")
    assert (record.body, dict(record.attributes)) == ({"a": [1]}, {"n": 1})


def test_two_processors_of_one_gate_export_each_record_both_and_show_it_once() -> None:
    it = Logged()
    other = LogProbe()
    second = GateLogRecordProcessor(other, it.gate)
    it.loggers.add_log_record_processor(second)
    with it.logged("agent"):
        pass
    assert it.left == other.bodies == ["agent"]
    assert len(it.runs[0].records) == 1
    second.shutdown()


CALLED: dict[str, Any] = {"gen_ai.operation.name": "execute_tool"}
NOTES: list[Any] = [
    pytest.param(lambda it, agent, _ended: it.log("x", agent), [], id="in the agent"),
    pytest.param(
        lambda it, agent, _ended: it.log("x", local(context_of(agent).trace_id)),
        ["logs.orphan_record"],
        id="a span that is not there",
    ),
    pytest.param(
        lambda it, agent, _ended: it.log(
            "x", context=baggage.set_baggage("spangate.run_id", run_id(it, agent), Context())
        ),
        ["logs.orphan_record"],
        id="no span, and the run's baggage",
    ),
    pytest.param(
        lambda it, _agent, _ended: it.log("x", context=baggage.set_baggage("spangate.run_id", "another", Context())),
        [],
        id="no span, and another run's baggage",
    ),
    pytest.param(lambda it, _agent, ended: it.log("x", ended), ["logs.after_close"], id="a span that has ended"),
]


def run_id(it: Logged, agent: Span) -> str:
    """Open a run at a span, as ``spangate.run`` does, and return its id."""
    opened = context_of(agent)
    it.gate._buffer.open_run("kitchen", opened.trace_id, opened.span_id, is_own=True)
    return "kitchen"


def test_what_a_run_of_the_programs_own_logs_outside_of_its_trace_is_found_by_its_baggage() -> None:
    it = Logged()
    with spangate.run(max_iters=1, tracer_provider=it) as run:
        for _ in run.iterations():
            carried = baggage.get_baggage("spangate.run_id")
            it.log("x", context=baggage.set_baggage("spangate.run_id", carried, Context()))
            run.halt("done")
    assert it.left == ["x"]
    assert it.notes == ["logs.orphan_record"]


@pytest.mark.parametrize("level", ["fail", "warn"])
def test_what_a_trace_that_carries_the_run_logs_shares_the_fate_of_the_run(level: Any) -> None:
    codes = ("forest.multiple_roots", "forest.multiple_trace_ids")
    it = Logged(gates=(Forest(), Policy(levels=dict.fromkeys(codes, level))))
    with spangate.run(max_iters=1, tracer_provider=it) as run:
        for _ in run.iterations():
            carrying = baggage.set_baggage("spangate.run_id", run.run_id, Context())
            elsewhere = it.get_tracer("queue").start_span("execute_tool q", carrying, attributes=CALLED)
            it.log("elsewhere", elsewhere.get_span_context())
            elsewhere.end()
            run.halt("done")
    assert it.flush()
    assert it.verdicts[0].verdict == ("fail" if level == "fail" else "pass")
    assert it.left == ([] if level == "fail" else ["elsewhere"])
    assert it.logs.withheld == (1 if level == "fail" else 0)
    assert not it.gate._logs.holds_records


@pytest.mark.parametrize(("emit", "codes"), NOTES)
def test_records_that_fit_no_live_span_are_told(emit: Any, codes: list[str]) -> None:
    it = Logged()
    with it.open("agent") as agent:
        emit(it, agent, it.ended("tool", under=agent))
    assert it.left == ["x"]
    assert (it.notes, it.verdicts[0].verdict) == (codes, "pass")
    assert it.logs.joined == (1 if codes == [] and it.runs[0].records else 0)


def test_many_such_records_are_one_finding() -> None:
    it = Logged()
    with it.open("agent") as agent:
        tool = it.ended("tool", under=agent)
        for _ in range(40):
            it.log("x", tool)
    assert it.flush()
    (finding,) = [one for one in it.verdicts[0].warnings if one.gate == "logs"]
    assert finding.detail.startswith("40 log records came when it had ended")
    assert finding.span is not None
    assert finding.span.span_id == context_of(tool).span_id


def test_a_record_of_the_span_in_another_process_that_started_the_run_is_no_orphan() -> None:
    it = Logged()
    with it.open("agent", under=remote()):
        it.log("x", remote())
    assert (it.left, it.notes) == (["x"], [])


def test_without_a_log_processor_nobody_judges_records() -> None:
    it = Gated()
    with it.open("agent"):
        pass
    assert it.flush()
    assert [one for one in it.verdicts[0].findings if one.gate == "logs"] == []


def test_a_policy_may_make_it_a_failure() -> None:
    it = Logged(gates=[Policy(levels={"logs.after_close": "fail"})])
    with it.open("agent") as agent:
        it.log("x", it.ended("tool", under=agent))
    assert (it.left, it.verdicts[0].verdict) == ([], "fail")


def test_threads_have_their_records_in_their_runs() -> None:
    it = Logged()
    numbers = itertools.count()

    def work(leaks: bool) -> None:  # noqa: FBT001
        number = next(numbers)
        with it.logged("agent", f"{'bad' if leaks else 'good'} {number}") as agent:
            for _ in range(20):
                with it.logged("tool", f"{'bad' if leaks else 'good'} {number}", under=agent):
                    pass
            if leaks:
                it.start("generation", under=agent)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [False, True] * 20))
    left = it.left
    assert len(left) == 20 * 21
    assert all(body.startswith("good") for body in left)
    assert (it.logs.withheld, it.logs.losses, it.logs.joined) == (20 * 21, {}, 40 * 21)


def test_tasks_have_their_records_in_their_runs() -> None:
    it = Logged()
    logger = it.loggers.get_logger("test")

    async def agent(number: int) -> None:
        with use_span(it.start("agent", f"agent {number}"), end_on_exit=True) as root:
            await asyncio.sleep(0)
            logger.emit(body=number)
            await asyncio.gather(*(asyncio.create_task(tool(number, root)) for _ in range(3)))

    async def tool(number: int, root: Any) -> None:
        with use_span(it.start("tool", under=root), end_on_exit=number != 2):
            await asyncio.sleep(0)
            logger.emit(body=number)

    async def main() -> None:
        await asyncio.gather(*(agent(number) for number in range(5)))

    contextvars.Context().run(asyncio.run, main())
    assert sorted(it.left) == sorted([0, 1, 3, 4] * 4)
    assert it.logs.withheld == 4


def test_the_bound_in_bytes_counts_records_and_ends_a_run_that_says_too_much() -> None:
    it = Logged(max_held_bytes=1 << 20)
    with it.open("agent") as agent:
        for _ in range(600):
            it.log("x" * 1024, agent)
        it.until(lambda: it.verdicts != [])
    assert (it.verdicts[0].trigger, it.verdicts[0].failures[0].code) == ("memory", "buffer.overflow")
    assert it.left == []
    assert it.logs.losses == {}


def test_beyond_that_bound_records_are_lost_and_counted_and_the_run_is_no_whole_one() -> None:
    is_judging, go_on = threading.Event(), threading.Event()

    def hangs(run: Run) -> Iterator[Finding]:
        is_judging.set()
        go_on.wait(60.0)
        yield from Forest()(run)

    it = Logged(max_held_bytes=1 << 20, gates=[hangs])
    it.ended("agent", "keeps the gate busy")
    assert is_judging.wait(10.0)
    with it.open("agent") as agent:
        for _ in range(1000):
            it.log("x" * 1024, agent)
    go_on.set()
    assert not it.loggers.force_flush()
    lost = it.logs.losses["overload"]
    assert 0 < lost < 1000
    assert [one.code for one in it.verdicts[1].failures] == ["buffer.overflow"]
    assert (it.left, it.logs.withheld) == ([], 1000 - lost)
    it.log("x" * 1024, it.ended("other"))  # what was held has made room
    assert (len(it.left), it.logs.losses) == (1, {"overload": lost})


def test_where_every_agent_is_a_run_of_its_own_each_has_its_records() -> None:
    it = Logged(unit="agent")
    with it.logged("other", "job") as job:
        with it.logged("agent", "good", under=job):
            pass
        with it.logged("agent", "bad", under=job) as bad:
            it.start("generation", under=bad)
    assert sorted(it.left) == ["good", "job"]
    assert it.logs.withheld == 1


def test_a_part_of_a_run_that_another_process_judges_lets_its_records_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processor, "SHUTDOWN_S", 0.1)
    words = {"RECEIVER": "http://127.0.0.1:9", "RUN_ID": "27d2fbe3e0e2ab4f"}
    for name, value in words.items():
        monkeypatch.setenv(f"SPANGATE_{name}", value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20x")
    it = Logged()
    with it.logged("agent") as agent:
        it.start("generation", under=agent)
    it.until(lambda: it.sent == ["agent"])
    it.gate.shutdown()
    assert it.verdicts == []


def test_whatever_another_processor_makes_of_a_record_nobody_who_logs_is_told() -> None:
    class Spoils(LogRecordProcessor):
        def on_emit(self, log_record: ReadWriteLogRecord) -> None:
            log_record.log_record.attributes = next(attributes)
            log_record.log_record.severity_number = "loud"  # type: ignore[assignment]

        def shutdown(self) -> None:
            """Do nothing."""

        def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002  the interface's name
            return True

    it = Logged()
    attributes: Iterator[Any] = iter([None, {"a": 1}, MappingProxyType({"a": 1}), 7])
    loggers = LoggerProvider(Resource({}), shutdown_on_exit=False)
    loggers.add_log_record_processor(Spoils())
    loggers.add_log_record_processor(it.logs)
    with use_span(it.start("agent"), end_on_exit=True):
        for number in range(4):
            loggers.get_logger("test").emit(body=number)
    assert not it.loggers.force_flush()
    assert it.sent == [0, 1, 2]
    assert it.logs.losses == {"hook_error": 1}
    assert [(record.body, record.severity) for record in it.runs[0].records] == [(0, 0), (1, 0), (2, 0)]


def test_a_wrong_exporter_or_gate_is_told_at_once() -> None:
    it = Gated()
    with pytest.raises(TypeError, match="give an exporter of log records"):
        GateLogRecordProcessor(object(), it.gate)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give an exporter of log records"):
        GateLogRecordProcessor(LogProbe, it.gate)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on the tracer provider"):
        GateLogRecordProcessor(LogProbe(), it)  # type: ignore[arg-type]
    assert isinstance(it.gate, GateSpanProcessor)


def test_a_consumer_of_messages_is_a_request_as_well() -> None:
    it = Logged()
    with it.open("entry", "message", kind=SpanKind.CONSUMER) as message:
        it.log("received", message)
    assert it.left == ["received"]


steps = st.lists(st.tuples(st.sampled_from(["start", "end", "log", "leak", "tick"]), st.integers(0, 3)), max_size=25)


@given(steps)
def test_every_record_is_released_withheld_or_lost_whatever_happens(what: list[tuple[str, int]]) -> None:
    it = Logged()
    spans: list[Any] = [it.start("agent")]
    emitted = 0
    for act, number in what:
        at = spans[number % len(spans)]
        if act == "start":
            spans.append(it.start("tool", under=at))
        elif act == "end":
            at.end()
        elif act == "log":
            it.log(emitted, at)
            emitted += 1
        elif act == "leak":
            it.start("generation", under=at)
        else:
            it.flush()
    it.gate.shutdown()
    it.logs.shutdown()
    left = it.sent
    assert len(left) + it.logs.withheld + sum(it.logs.losses.values()) == emitted
    assert it.logs.losses == {}
    assert len(set(left)) == len(left)
