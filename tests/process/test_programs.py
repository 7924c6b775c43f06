"""Every way to start a program leaves a span with its exit, and the program knows the run that it is in."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from spangate import process
from spangate._records import Exit
from spangate.process import _environment
from spangate.process._program import begin
from tests.live.gated import Gated
from tests.process.agent import Agent

Way = Callable[[str], object]
NAMES = ("TRACEPARENT", "SPANGATE_RUN_ID", "SPANGATE_INVOCATION_ID", "RUN_ID", "INVOCATION_ID")


async def _asyncio_exec(command: str) -> None:
    await (await asyncio.create_subprocess_exec("sh", "-c", command)).wait()


async def _asyncio_shell(command: str) -> None:
    await (await asyncio.create_subprocess_shell(command)).wait()


async def _own_asyncio_exec(command: str) -> None:
    await (await process.create_subprocess_exec("sh", "-c", command)).communicate()


async def _own_asyncio_shell(command: str) -> None:
    await (await process.create_subprocess_shell(command)).communicate()


async def _loop(command: str) -> None:
    ended = asyncio.Event()

    class Protocol(asyncio.SubprocessProtocol):
        def process_exited(self) -> None:
            ended.set()

    transport, _ = await asyncio.get_running_loop().subprocess_shell(Protocol, command)
    await ended.wait()
    transport.close()


def _waited(popen: Any) -> None:
    with popen as started:
        started.wait()


WAYS: dict[str, Way] = {
    "subprocess.run": lambda command: subprocess.run(["sh", "-c", command], check=False),
    "subprocess.Popen": lambda command: _waited(subprocess.Popen(["sh", "-c", command])),
    "subprocess.call": lambda command: subprocess.call(command, shell=True),
    "subprocess.getstatusoutput": subprocess.getstatusoutput,
    "os.system": lambda command: os.system(command),  # noqa: PLW0108  looked up when it is called
    "os.popen": lambda command: os.popen(command).close(),
    "asyncio.create_subprocess_exec": lambda command: asyncio.run(_asyncio_exec(command)),
    "asyncio.create_subprocess_shell": lambda command: asyncio.run(_asyncio_shell(command)),
    "loop.subprocess_shell": lambda command: asyncio.run(_loop(command)),
    "process.run": lambda command: process.run(["sh", "-c", command]),
    "process.Popen": lambda command: _waited(process.Popen(["sh", "-c", command])),
    "process.call": lambda command: process.call(command, shell=True),
    "process.getstatusoutput": process.getstatusoutput,
    "process.system": process.system,
    "process.create_subprocess_exec": lambda command: asyncio.run(_own_asyncio_exec(command)),
    "process.create_subprocess_shell": lambda command: asyncio.run(_own_asyncio_shell(command)),
}
OWN = {name: way for name, way in WAYS.items() if name.startswith("process.")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_program_is_a_span_with_its_exit_and_knows_its_run(agent: Agent, tmp_path: Path, way: Way) -> None:
    told = tmp_path / "told"
    script = f'for name in {" ".join(NAMES)}; do eval echo \\"\\$$name\\"; done > {told}; exit 3'
    done = agent.does(lambda: way(script))
    (span,) = done.programs
    assert (span.name, span.kind, span.status.status_code) == ("sh", trace.SpanKind.CLIENT, StatusCode.ERROR)
    assert done.program["process.exit.code"] == 3
    assert done.program["error.type"] == "3"
    invocation_id = done.program["spangate.invocation_id"]
    context = f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
    run_id = done.verdict.run_id
    assert told.read_text().split() == [context, run_id, invocation_id, run_id, invocation_id]
    assert done.said == "pass"
    assert done.verdict.gates["exits"] == "pass"


@pytest.mark.parametrize("way", OWN.values(), ids=OWN)
def test_the_functions_need_no_instrumentation(agent: Agent, gated: Gated, way: Way) -> None:
    process.uninstrument()
    process.use_provider(gated)
    done = agent.does(lambda: way("exit 0"))
    assert done.program["process.exit.code"] == 0
    assert done.said == "pass"


def test_code_that_is_not_instrumented_leaves_nothing(agent: Agent) -> None:
    process.uninstrument()
    assert agent.does(lambda: subprocess.run(["true"], check=True)).programs == []
    assert vars(subprocess.Popen).keys() >= {"wait", "communicate"}
    assert "returncode" not in vars(subprocess.Popen)


def test_a_program_that_cannot_be_started_says_so_and_is_no_orphan(agent: Agent) -> None:
    def task() -> None:
        with pytest.raises(FileNotFoundError, match="no-such-program"):
            subprocess.run(["no-such-program"], check=False)

    done = agent.does(task)
    assert done.program["error.type"] == "FileNotFoundError"
    assert "process.pid" not in done.program
    assert "exits.orphan" not in done.said


def test_a_program_whose_time_is_up_has_a_status_of_its_own(agent: Agent) -> None:
    def task() -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["sleep", "60"], timeout=0.05, check=False)

    done = agent.does(task)
    assert (done.program["process.exit.code"], done.program["error.type"]) == (-signal.SIGKILL, "timeout")
    assert done.verdict.gates["exits"] == "pass"


@pytest.mark.parametrize("end", [subprocess.Popen.terminate, subprocess.Popen.kill])
def test_a_program_that_its_run_ends_is_cancelled(agent: Agent, end: Callable[[Any], None]) -> None:
    def task() -> None:
        server = subprocess.Popen(["sleep", "60"])
        end(server)
        server.wait()

    done = agent.does(task)
    assert done.program["error.type"] == "cancelled"
    assert done.said == "pass (completeness.cancelled)"


def test_a_program_that_a_signal_kills_names_it(agent: Agent) -> None:
    done = agent.does(lambda: subprocess.run("kill -TERM $$", shell=True, check=False))
    assert (done.program["process.exit.code"], done.program["error.type"]) == (-signal.SIGTERM, "SIGTERM")


def test_a_run_takes_note_of_a_program_that_nobody_waits_for(agent: Agent) -> None:
    children: list[Any] = []
    done = agent.does(lambda: children.append(subprocess.Popen(["sh", "-c", "exit 7"])))
    assert done.program["process.exit.code"] == 7
    assert children[0].wait() == 7  # its exit was looked at, and is still there to be waited for


def test_a_program_that_outlives_its_run_is_an_open_span(agent: Agent) -> None:
    children: list[Any] = []
    try:
        done = agent.does(lambda: children.append(subprocess.Popen(["sleep", "60"])))
        assert done.said == "fail completeness.open_span"
    finally:
        children[0].kill()
        children[0].wait()


def test_below_a_request_each_agent_has_its_own_programs_and_the_request_keeps_none(gated: Gated) -> None:
    children = []
    with gated.open("entry", "POST /chat", kind=SpanKind.SERVER) as request:
        for number in range(3):
            with gated.open("agent", f"agent {number}", request) as agent, trace.use_span(agent):
                children.append(subprocess.Popen(["sh", "-c", f"exit {number}"]))
            gated.until(lambda number=number: len(gated.verdicts) > number)  # type: ignore[misc]
        (tree,) = gated.gate._buffer.held()
        assert tree.exits == []
    assert gated.told == {f"agent {number}": "pass (completeness.outlived_root)" for number in range(3)}
    gated.until(lambda: gated.names.count("sh") == len(children))
    codes = [span.attributes["process.exit.code"] for span in gated.exported if span.name == "sh"]  # type: ignore[index]
    assert codes == [0, 1, 2]
    assert [child.wait() for child in children] == codes


def test_concurrent_tools_keep_their_programs_apart(agent: Agent, gated: Gated) -> None:
    def tool(number: int, context: Any) -> None:
        with gated.open("tool", f"tool {number}", context) as span, trace.use_span(span):
            subprocess.run(["sh", "-c", f"exit {number}"], check=False)

    def task() -> None:
        root: Any = trace.get_current_span()
        threads = [threading.Thread(target=tool, args=(number, root)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    done = agent.does(task)
    tools = {span.context.span_id: span.name for span in done.spans}
    assert {tools[span.parent.span_id]: span.attributes["process.exit.code"] for span in done.programs} == {  # type: ignore[union-attr,index]
        f"tool {number}": number for number in range(8)
    }
    assert done.verdict.gates["exits"] == "pass"


def test_a_tool_that_lost_its_run_brings_its_program_along(agent: Agent, gated: Gated) -> None:
    def tool() -> None:
        with gated.open("tool", "bash") as span, trace.use_span(span):
            subprocess.run(["true"], check=True)

    def task() -> None:
        lost = threading.Thread(target=tool)
        lost.start()
        lost.join()

    done = agent.does(task)
    assert done.said == "fail forest.stray_root"
    assert done.verdict.gates["exits"] == "pass"


def test_a_program_may_end_before_its_start_is_noted(agent: Agent) -> None:
    def task() -> None:
        program = begin("quick")
        assert program is not None
        program.exits(3)
        program.runs(1 << 30)

    assert agent.does(task).program["process.exit.code"] == 3


def test_a_signal_handler_may_poll_what_its_thread_waits_for(agent: Agent) -> None:
    def task() -> None:
        children = [subprocess.Popen(["sleep", "0.05"]) for _ in range(8)]
        before = signal.signal(signal.SIGCHLD, lambda *_: [child.poll() for child in children] and None)
        try:
            for child in children:
                child.wait()
        finally:
            signal.signal(signal.SIGCHLD, before)

    done = agent.does(task)
    assert len(done.programs) == 8
    assert done.said == "pass"


def test_a_retry_names_what_it_repeats(agent: Agent) -> None:
    def task() -> None:
        first = subprocess.Popen(["false"])
        first.wait()
        with process.retry_of(process.invocation_id(first)):
            subprocess.run(["true"], check=True)

    first, second = (span.attributes or {} for span in agent.does(task).programs)
    assert second["spangate.parent_invocation_id"] == first["spangate.invocation_id"]
    assert second["spangate.invocation_id"] != first["spangate.invocation_id"]
    assert "spangate.parent_invocation_id" not in first


def environment_of(agent: Agent, **given: Any) -> dict[str, str]:
    """Return the environment that a program sees."""
    printed: list[str] = []
    program = [sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"]

    def task() -> None:
        printed.append(subprocess.run(program, capture_output=True, text=True, check=True, **given).stdout)

    agent.does(task)
    found: dict[str, str] = json.loads(printed[0])
    return found


def test_stale_context_is_taken_out_of_the_environment(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = {"TRACEPARENT": "stale", "traceparent": "stale", "TRACESTATE": "a=b", "BAGGAGE": "c=d"}
    for name, value in {**stale, "SPANGATE_RUN_ID": "stale", "INVOCATION_ID": "systemd's"}.items():
        monkeypatch.setenv(name, value)
    seen = environment_of(agent)
    assert {name for name in ("traceparent", "TRACESTATE", "BAGGAGE") if name in seen} == set()
    assert "stale" not in seen.values()
    assert seen["INVOCATION_ID"] == seen["SPANGATE_INVOCATION_ID"]


def test_a_function_that_runs_in_the_child_finds_the_context(agent: Agent) -> None:
    seen = environment_of(agent, preexec_fn=lambda: os.environ.update(SEEN=os.environ["TRACEPARENT"]))
    assert seen["SEEN"] == seen["TRACEPARENT"]


def test_stale_context_is_taken_out_of_the_environment_of_a_shell(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAGGAGE", "old=1")
    monkeypatch.setenv("traceparent", "old=1")
    told = tmp_path / "told"
    agent.does(lambda: os.system(f"env > {told}"))
    assert "old=1" not in told.read_text()


def test_what_the_caller_gives_is_kept(agent: Agent) -> None:
    seen = environment_of(agent, env={**os.environ, "RUN_ID": "mine", "OTHER": "kept", "TRACEPARENT": "theirs"})
    assert (seen["RUN_ID"], seen["OTHER"]) == ("mine", "kept")
    assert seen["TRACEPARENT"].startswith("00-")


def test_the_environment_of_the_caller_is_not_changed(agent: Agent) -> None:
    before, given = dict(os.environ), {"PATH": os.environ["PATH"]}
    environment_of(agent, env=given)
    assert (dict(os.environ), given) == (before, {"PATH": os.environ["PATH"]})


def test_output_that_was_read_is_known_by_its_hash(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Exit] = []
    monkeypatch.setattr("spangate.process._program.tell_exit", rows.append)
    agent.does(lambda: subprocess.run("printf out; printf err >&2", shell=True, capture_output=True, check=True))
    agent.does(lambda: subprocess.run(["true"], check=True))
    first, second = rows
    assert first.output_sha256 == hashlib.sha256(b"out\0err").hexdigest()
    assert (first.output_bytes, second.output_bytes, second.output_sha256) == (6, None, None)


def test_a_program_in_a_terminal_is_only_seen_by_the_watch(agent: Agent) -> None:
    process.watch()
    done = agent.does(lambda: pty.spawn(["true"], lambda _: b""))
    (warning,) = done.verdict.warnings
    assert warning.code == "exits.unwatched_spawn"
    assert f"pty.spawn of true at {__file__}" in warning.detail


def test_the_watch_names_who_starts_a_program_round_everything(agent: Agent) -> None:
    def task() -> None:
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "secret"], dict(os.environ)), 0)

    process.watch()
    (warning,) = agent.does(task).verdict.warnings
    assert warning.code == "exits.unwatched_spawn"
    assert f"os.posix_spawn of sh at {__file__}" in warning.detail
    assert "secret" not in warning.detail
    process.unwatch()
    assert agent.does(task).said == "pass"


def test_the_watch_is_silent_about_programs_that_are_traced(agent: Agent) -> None:
    process.watch()
    done = agent.does(lambda: [way("exit 0") for way in WAYS.values()])
    assert done.said == "pass"
    assert len(done.programs) == len(WAYS)


def test_outside_of_any_trace_nothing_is_changed(gated: Gated) -> None:
    gated.shutdown()
    process.uninstrument()
    process.instrument(trace.NoOpTracerProvider())
    printed = subprocess.run(["sh", "-c", "echo $TRACEPARENT"], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == os.environ.get("TRACEPARENT", "")


def test_instrumenting_twice_is_undone_once() -> None:
    before = {name: vars(subprocess.Popen).get(name) for name in ("__init__", "wait", "returncode")}
    process.instrument()
    process.instrument()
    assert subprocess.Popen.wait is not before["wait"]
    process.uninstrument()
    assert {name: vars(subprocess.Popen).get(name) for name in before} == before


@pytest.mark.parametrize("behind", ["_data", "_elsewhere"])
def test_a_child_inherits_the_environment_however_python_keeps_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    monkeypatch.setattr(_environment, "_BEHIND", behind)
    monkeypatch.setenv("MINE", "ö")
    seen = environment_of(agent)
    assert seen["MINE"] == "ö"
    assert {*os.environ} <= {*seen}
    assert "TRACEPARENT" not in os.environ
