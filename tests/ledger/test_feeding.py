"""A gate with a ledger writes down the tools and programs of every run that it judges, whatever becomes of the run."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, Tracer

from spangate import GateSpanProcessor, process
from spangate._ledger.feeder import Feeder
from spangate._ledger.told import told
from spangate._records import Exit, Span
from spangate._telemetry import Telemetry
from spangate.ledger import Attempt, RetryBlocked, RetryLedger
from spangate.testing import Clock, GatedProvider
from tests.spans import run_of, span

AGENT = {"gen_ai.operation.name": "invoke_agent"}


@pytest.fixture
def provider(ledger: RetryLedger, clock: Clock) -> Iterator[GatedProvider]:
    with GatedProvider(clock=clock, ledger=ledger) as made:
        yield made


@pytest.fixture
def tracer(provider: GatedProvider) -> Tracer:
    return provider.get_tracer("kitchen")


def tool(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    return {"name": f"execute_tool {name}", "attributes": attributes}


def call(tracer: Tracer, name: str, arguments: Any = None, *, code: StatusCode = StatusCode.UNSET, **more: Any) -> None:
    with tracer.start_as_current_span(**tool(name, arguments, **more)) as one:
        one.set_status(Status(code))


def ask(tracer: Tracer) -> None:
    usage = {"gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 1}
    tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat", **usage}).end()


def rows(ledger: RetryLedger, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(attempt, name) for name in names) for attempt in ledger.attempts()]


def test_a_failure_that_is_repeated_is_a_warning_on_the_run_and_two_rows(path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(GateSpanProcessor(exporter, ledger=path))
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        for _ in range(2):
            call(tracer, "lint", {"path": "a", "api_key": "hunter2-hunter2"}, code=StatusCode.ERROR)
            ask(tracer)
    provider.shutdown()
    root = exporter.get_finished_spans()[-1]
    assert root.attributes is not None
    assert (root.name, root.attributes["spangate.verdict"]) == ("invoke_agent cook", "pass")
    assert "retries.repeated_failure" in str(root.attributes["spangate.warnings"])
    with closing(RetryLedger(path)) as ledger:
        assert rows(ledger, "tool", "outcome", "origin", "sighting") == [("lint", "error", "span", "ended")] * 2
        assert rows(ledger, "trace_id", "span_id") == [
            (format(one.context.trace_id, "032x"), format(one.context.span_id, "016x"))
            for one in exporter.get_finished_spans()
            if one.name == "execute_tool lint"
        ]
        veto = ledger.veto("lint", {"api_key": "another", "path": "a"})
        assert veto
        with pytest.raises(RetryBlocked, match=f"span {veto.earlier and veto.earlier.span_id} of trace"):
            ledger.guard("lint", {"api_key": "another", "path": "a"}).__enter__()
    assert [file.name for file in path.parent.iterdir() if b"hunter2" in file.read_bytes()] == []


def test_a_refused_run_is_written_down_too(provider: GatedProvider, tracer: Tracer, ledger: RetryLedger) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        call(tracer, "lint", {}, code=StatusCode.ERROR)
        ask(tracer)
        tracer.start_span("never ended")
    provider.shutdown()
    provider.assert_refused("completeness.open_span")
    assert rows(ledger, "tool", "outcome") == [("lint", "error")]


def test_what_has_no_agent_is_not(provider: GatedProvider, tracer: Tracer, ledger: RetryLedger) -> None:
    tracer.start_span("GET /").end()
    provider.settle()
    assert ledger.attempts() == []


def test_whoever_has_no_ledger_pays_nothing_for_it(provider: GatedProvider) -> None:
    plain = GateSpanProcessor(InMemorySpanExporter())
    [gate] = provider._active_span_processor._span_processors
    assert ("on_start" in vars(plain), "on_start" in vars(gate)) == (False, True)
    plain.shutdown()


def test_programs_have_rows_with_the_exit_that_was_seen(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    process.use_provider(provider)
    try:
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            for code in (0, 3):
                process.run([sys.executable, "-c", f"raise SystemExit({code})"], check=False)
    finally:
        process.use_provider(None)
    provider.settle()
    assert rows(ledger, "outcome", "exit_code", "fingerprint") == [("ok", 0, None), ("error", 3, None)]


def test_a_guard_in_a_tool_span_and_a_tool_span_in_a_guard_are_one_call(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        with tracer.start_as_current_span(**tool("inside")) as first, ledger.guard("inside", "x") as guard:
            guard.exit(4)
        with ledger.guard("around", "x"), tracer.start_as_current_span(**tool("execute", {})) as second:
            pass
        ask(tracer)
    provider.settle()
    spans = [format(one.get_span_context().span_id, "016x") for one in (first, second)]
    assert rows(ledger, "tool", "outcome", "exit_code", "span_id", "sighting", "origin") == [
        ("inside", "error", 4, spans[0], "ended", "guard"),
        ("around", "ok", None, spans[1], "ended", "guard"),
    ]


def test_of_several_tools_in_a_guard_its_own_name_is_its_call(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        with ledger.guard("lint", "x"):
            call(tracer, "look")
            call(tracer, "lint")
        with ledger.guard("test", "x"), tracer.start_as_current_span(**tool("test")):
            call(tracer, "look")
        call(tracer, "look")
        ask(tracer)
    provider.settle()
    found = sorted(rows(ledger, "tool", "origin"))
    assert found == [("lint", "guard"), ("look", "span"), ("look", "span"), ("look", "span"), ("test", "guard")]


def test_a_tool_around_guards_of_other_names_is_a_call_of_its_own(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        with tracer.start_as_current_span(**tool("check", {"all": True})):
            for name in ("lint", "test"):
                with ledger.guard(name):
                    pass
        ask(tracer)
    provider.settle()
    found = sorted(rows(ledger, "tool", "origin", "sighting"))
    assert found == [("check", "span", "ended"), ("lint", "guard", "ended"), ("test", "guard", "ended")]


def test_a_guard_around_the_whole_run_is_found_too(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    with ledger.guard("lint", "x"):
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            call(tracer, "lint")
            ask(tracer)
        provider.settle()
    assert rows(ledger, "tool", "origin", "sighting", "outcome") == [("lint", "guard", "ended", "ok")]


def test_a_call_that_was_blocked_is_no_failure_and_blocks_nothing(path: Path, clock: Clock) -> None:
    ledger = RetryLedger(path, max_age_s=150.0, clock=clock)
    with GatedProvider(clock=clock, ledger=ledger) as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("agent", attributes=AGENT):
            fail_guarded(tracer, ledger, RuntimeError)
        provider.settle()
        clock.advance(100)
        with tracer.start_as_current_span("agent", attributes=AGENT):
            fail_guarded(tracer, ledger, RetryBlocked)
        provider.settle()
        clock.advance(100)
        assert [row.outcome for row in ledger.attempts()] == ["error", "control_flow"]
        assert not ledger.veto("shell", {"a": 1}).blocked
    ledger.close()


def fail_guarded(tracer: Tracer, ledger: RetryLedger, error: type[Exception]) -> None:
    with (
        pytest.raises(error),
        tracer.start_as_current_span(**tool("shell", {"a": 1})),
        ledger.guard("shell", {"a": 1}),
    ):
        raise RuntimeError


def test_a_veto_inside_of_another_call_is_no_failure_of_that_one(ledger: RetryLedger) -> None:
    with pytest.raises(RuntimeError), ledger.guard("inner"):
        raise RuntimeError
    with pytest.raises(RetryBlocked), ledger.guard("outer"), ledger.guard("inner"):
        pytest.fail("the inner call is blocked")
    assert not ledger.veto("outer").blocked


def test_a_guard_of_another_ledger_is_another_call(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger, tmp_path: Path
) -> None:
    with closing(RetryLedger(tmp_path / "other.db")) as other:
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            with other.guard("lint", "x"):
                call(tracer, "lint")
            ask(tracer)
        provider.settle()
        assert rows(ledger, "tool", "origin") == [("lint", "span")]
        assert rows(other, "tool", "origin", "sighting") == [("lint", "guard", "awaited")]


def test_a_success_whose_span_never_ended_is_incomplete(
    provider: GatedProvider, tracer: Tracer, repo: Path, path: Path, clock: Clock
) -> None:
    with closing(RetryLedger(path, repo=repo, clock=clock)) as own:
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            leaked = tracer.start_as_current_span(**tool("lint"), end_on_exit=False)
            with leaked, own.guard("lint", "x") as guard:
                guard.exit(0)
            assert own.veto("lint", "x")  # what was seen here counts, until its span is known to be missing
        provider.shutdown()
        provider.assert_refused("completeness.open_span")
        assert [(one.sighting, one.is_incomplete) for one in own.attempts()] == [("missing", True)]
        veto = own.veto("lint", "x")
        assert not veto
        assert "its span was never seen to end, which is no evidence" in veto.reason


@pytest.mark.parametrize(
    ("attributes", "session"),
    [({"session.id": "s"}, "s"), ({"gen_ai.conversation.id": "c"}, "c"), ({}, ""), ({"session.id": 7}, "")],
)
def test_the_session_is_that_of_the_run(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger, attributes: Mapping[str, Any], session: str
) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes={**AGENT, **attributes}):
        call(tracer, "lint")
    provider.settle()
    assert rows(ledger, "session") == [(session,)]


def test_versions_and_files_are_written_down_where_spans_tell_them(
    provider: GatedProvider, tracer: Tracer, ledger: RetryLedger
) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        with tracer.start_as_current_span(**tool("edit", {}, tool_version="2")):
            for file in (
                {"op": "write", "path": "new", "after_hash": "1"},
                {"op": "write", "path": "old", "before_hash": "1", "after_hash": "2"},
                {"op": "write", "path": "same", "before_hash": "1", "after_hash": "2"},
                {"op": "write", "path": "same", "before_hash": "2", "after_hash": "1"},
                {"op": "delete", "path": "gone"},
                {"op": "write", "path": "unknown"},
                {"op": "move", "path": "here", "target_path": "there", "before_hash": "1", "after_hash": "1"},
            ):
                tracer.start_span("file", attributes=file).end()
        call(tracer, "look", {})
    provider.settle()
    assert rows(ledger, "tool", "version", "diff_stat") == [("edit", "2", "+2 ~2 -2"), ("look", "", None)]


def broken(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no ledger" * 1000)


def in_the_way(path: Path) -> None:
    path.parent.write_text("a file", encoding="utf-8")


def directory(path: Path) -> None:
    path.mkdir(parents=True)


@pytest.mark.parametrize("spoil", [broken, in_the_way, directory])
def test_a_ledger_that_cannot_be_written_costs_no_run_anything(
    path: Path, spoil: Any, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(path)
    with caplog.at_level(logging.WARNING), GatedProvider(ledger=str(path)) as provider:
        tracer = provider.get_tracer("kitchen")
        for _ in range(3):
            with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
                call(tracer, "lint", {})
                call(tracer, "test", {})
        provider.settle()
        [gate] = provider._active_span_processor._span_processors
    provider.assert_released()
    assert len(provider.released) == 9
    assert isinstance(gate, GateSpanProcessor)
    assert (gate.left_out, gate.losses) == (6, {})
    assert [record.getMessage()[:26] for record in caplog.records] == ["the ledger does not take wh"[:26]]


def test_one_that_is_locked_is_waited_for_once_and_taken_up_again(path: Path) -> None:
    with closing(RetryLedger(path)) as ledger, GatedProvider(ledger=path) as provider:
        ledger.attempts()
        tracer = provider.get_tracer("kitchen")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            for _ in range(6):
                with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
                    call(tracer, "lint", {})
            provider.settle()
            assert time.monotonic() - began < 4  # of six times a second
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            call(tracer, "test", {})
        provider.settle()
        provider.assert_released()
        assert rows(ledger, "tool") == [("test",)]
        [gate] = provider._active_span_processor._span_processors
        assert isinstance(gate, GateSpanProcessor)
        assert gate.left_out == 6


def terms(ledger: RetryLedger) -> Any:
    return ledger.book.terms


def program(code: int | None, **fields: Any) -> Span:
    attributes = {} if code is None else {"process.exit.code": code}
    return span("process", "make", scope="spangate.process", attributes=attributes, **fields)


@pytest.mark.parametrize(
    ("said", "seen", "outcome", "code"),
    [
        pytest.param(program(0), None, "ok", 0, id="what the span says where nobody saw it end"),
        pytest.param(program(0), Exit("i", 3), "error", 3, id="what was seen, whatever the span says"),
        pytest.param(program(1, status="ERROR"), Exit("i", 0), "ok", 0, id="the other way round"),
        pytest.param(program(None), Exit("i", -9, timed_out=True), "timeout", -9, id="time was up"),
        pytest.param(
            span(
                "process",
                scope="spangate.process",
                status="ERROR",
                attributes={"error.type": "cancelled", "process.exit.code": -15},
            ),
            Exit("i", -15),
            "cancelled",
            -15,
            id="the run ended it",
        ),
        pytest.param(program(code=True), None, "ok", None, id="a code that is none"),
    ],
)
def test_the_exit_that_was_seen_here_wins(
    ledger: RetryLedger, said: Span, seen: Exit | None, outcome: str, code: int | None
) -> None:
    exits = None if seen is None else [replace(seen, trace_id=said.trace_id, span_id=said.span_id)]
    read = told(replace(run_of([span("agent"), said]), exits=exits), terms(ledger), [], {})
    assert [(one.outcome, one.exit_code) for one in read.fresh] == [(outcome, code)]


def fed(ledger: RetryLedger, spans: list[Span]) -> list[Attempt]:
    feeder = Feeder(ledger.book, Telemetry(lambda: 0))
    for _ in range(2):
        feeder.write(feeder.read(run_of(spans)))
    return ledger.attempts()


def test_a_run_that_is_judged_twice_is_written_down_once(ledger: RetryLedger) -> None:
    root = span("agent")
    assert len(fed(ledger, [root, *(span("tool", parent=root) for _ in range(3_000))])) == 3_000


def test_whatever_spans_hold_is_written_down(ledger: RetryLedger) -> None:
    root = span("agent")
    odd = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "half \ud83d",
        "gen_ai.tool.call.arguments": '{"x": NaN}',
        "process.exit.code": 1 << 80,
    }
    spans = [
        span("tool", parent=root, attributes=odd, end_ns=1 << 70),
        span("tool", "t" * 999, parent=root),
    ]
    found = fed(ledger, [root, *spans])
    assert [one.tool for one in found] == ["half \\ud83d", "t" * 256]
    assert found[0].fingerprint is not None


def test_a_program_can_be_asked_about_by_nobody(ledger: RetryLedger) -> None:
    """Programs record no arguments, so none of them is known again."""
    assert [one.fingerprint for one in fed(ledger, [span("agent"), program(1)])] == [None]
    assert not ledger.veto("make")


def test_the_ledger_of_a_gate_is_there_when_the_program_ends(path: Path) -> None:
    code = (
        "import sys; from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "from spangate import GateSpanProcessor\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(GateSpanProcessor(InMemorySpanExporter(), ledger=sys.argv[1]))\n"
        "tracer = provider.get_tracer('x')\n"
        "tracer.start_span('execute_tool a', attributes={'gen_ai.operation.name': 'execute_tool'}).end()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    with closing(RetryLedger(path)) as ledger:
        assert rows(ledger, "tool") == [("a",)]
    assert [file.name for file in path.parent.iterdir()] == ["calls.db"]
