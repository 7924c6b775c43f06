"""A gate in a program of a run knows that it is a member: it judges nothing, and hands on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import use_span

from spangate import GateSpanProcessor
from spangate._membership import membership, way_to
from spangate.process import Receiver
from tests.live.gated import Gated, remote
from tests.process.agent import Agent, Done

MEMBER = [sys.executable, str(Path(__file__).with_name("member.py"))]
STOCK = [sys.executable, str(Path(__file__).with_name("stock_child.py"))]


def start(*arguments: str) -> str:
    return subprocess.run([*MEMBER, *arguments], check=True, capture_output=True, text=True).stdout


def names(done: Done) -> list[str]:
    return sorted(span.name for span in done.spans if span not in done.programs)


class TestHandsOn:
    def test_and_judges_nothing(self, agent: Agent) -> None:
        wrote: list[str] = []
        done = agent.does(lambda: wrote.append(start()))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool edit"]
        assert wrote == [""]
        verdicts = [span for span in done.spans if "spangate.verdict" in (span.attributes or {})]
        assert [span.name for span in verdicts] == ["agent"]

    def test_under_one_run_id(self, agent: Agent) -> None:
        done = agent.does(lambda: start("--grandchild"))
        assert {(span.attributes or {})["spangate.run_id"] for span in done.spans} == {done.verdict.run_id}
        ids = [(span.attributes or {}).get("spangate.invocation_id") for span in done.spans]
        told = [one for one in ids if one is not None]
        assert len(told) == len({*told}) == 4  # two programs, two tools

    def test_what_its_children_record(self, agent: Agent) -> None:
        done = agent.does(lambda: start("--grandchild"))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool edit", "execute_tool edit"]
        assert len(done.programs) == 2

    def test_also_where_they_get_an_environment_of_their_own(self, agent: Agent) -> None:
        done = agent.does(lambda: start("--grandchild", "--own-environment"))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool edit", "execute_tool edit"]

    def test_what_is_still_open_when_it_ends(self, agent: Agent) -> None:
        done = agent.does(lambda: start("--leak"))
        assert done.said == "fail completeness.open_span"
        (finding,) = done.verdict.failures
        assert finding.span is not None
        assert finding.span.name == "leaked"

    def test_what_its_forked_children_record(self, agent: Agent) -> None:
        done = agent.does(lambda: start("--fork"))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool edit", "forked"]

    def test_the_exit_that_it_had(self, agent: Agent) -> None:
        done = agent.does(lambda: subprocess.run([*MEMBER, "--exit", "3"], check=False))
        assert [(span.attributes or {}).get("process.exit.code") for span in done.programs] == [3]

    def test_a_program_between_needs_no_gate(self, agent: Agent) -> None:
        # The spans of the one between are recorded nowhere: what is below it hangs in the air, and that is said.
        done = agent.does(lambda: start("--plain", "--grandchild"))
        assert done.said == "fail forest.parent_outside_run"


class TestForkedFromTheRun:
    def test_what_a_forked_child_records_is_in_the_run(self, gated: Gated, agent: Agent) -> None:
        def fork() -> None:
            forked(lambda: gated.get_tracer("test").start_span("forked").end(), gated)

        done = agent.does(fork)
        assert done.said == "pass"
        assert names(done) == ["agent", "forked"]
        assert (done.spans[0].attributes or {})["spangate.run_id"] == done.verdict.run_id

    def test_it_is_in_the_tree_of_the_tool_that_forked_it(self, gated: Gated) -> None:
        """A server may answer two calls of one trace at once."""
        one, two = (
            gated.start("tool", name, under=remote(0xFEED, number)) for number, name in ((1, "one"), (2, "two"))
        )
        with use_span(two, end_on_exit=True):
            forked(lambda: gated.get_tracer("test").start_span("of two").end(), gated)
        gated.until(lambda: gated.flush() and gated.verdicts)
        one.end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        assert gated.told == {"one": "pass", "two": "pass"}
        (below,) = [span for span in gated.exported if span.name == "of two"]
        assert (below.attributes or {})["spangate.run_id"] == gated.verdicts[0].run_id

    def test_its_programs_are_told_of_the_parents_receiver(self, gated: Gated, agent: Agent) -> None:
        def fork() -> None:
            with gated.get_tracer("test").start_as_current_span("forked"):
                subprocess.run(STOCK, check=True)

        done = agent.does(lambda: forked(fork, gated))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool lint", "forked", "python work"]

    def test_programs_of_its_own_runs_have_a_receiver_of_its_own(self, gated: Gated) -> None:
        """As in a server that forks its workers when it starts."""

        def serve() -> None:
            with use_span(gated.start("agent", "in a worker"), end_on_exit=True):
                subprocess.run(STOCK, check=True)
            gated.until(lambda: gated.gate.force_flush() and gated.verdicts)
            assert gated.told == {"in a worker": "pass"}
            assert "python work" in gated.names

        forked(serve, gated)

    def test_what_it_starts_anew_is_its_own(self, gated: Gated) -> None:
        root = gated.start("agent")
        read, write = os.pipe()
        with use_span(root, end_on_exit=True):
            pid = os.fork()
            if pid == 0:
                gated.ended("agent", "alone")
                gated.gate.force_flush()
                os.write(write, " ".join([*gated.names, *gated.told.values()]).encode())
                os._exit(0)
            os.waitpid(pid, 0)
        assert os.read(read, 1000) == b"alone pass"
        gated.until(lambda: gated.flush() and gated.verdicts)
        assert gated.told == {"agent": "pass"}


def forked(task: Callable[[], object], gated: Gated) -> None:
    """Do something in a forked child, and see that it went well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            task()
            code = 0 if gated.gate.force_flush() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


KNOWN = {"SPANGATE_RUN_ID": "run", **way_to("http://127.0.0.1:1", "a.b.c")}


class TestMembership:
    def test_is_told_by_the_environment(self) -> None:
        member = membership({**KNOWN, "PATH": "/bin"})
        assert member is not None
        assert (member.run_id, member.address) == ("run", "http://127.0.0.1:1")
        assert member.headers == {"authorization": "Bearer a.b.c"}
        assert {**member.variables, "SPANGATE_RUN_ID": "run"} == KNOWN

    @pytest.mark.parametrize("missing", ["SPANGATE_RUN_ID", "SPANGATE_RECEIVER", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"])
    @pytest.mark.parametrize("value", [None, ""])
    def test_is_whole_or_none(self, missing: str, value: str | None) -> None:
        environment = {key: told for key, told in KNOWN.items() if key != missing}
        assert membership(environment if value is None else {**environment, missing: value}) is None

    @given(st.dictionaries(st.sampled_from([*KNOWN, "OTHER"]), st.text()))
    def test_any_environment_is_read(self, environment: Mapping[str, str]) -> None:
        member = membership(environment)
        assert member is None or member.run_id

    def test_a_receiver_that_is_gone_costs_the_spans_and_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        for name, value in KNOWN.items():
            monkeypatch.setenv(name, value)
        given = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        gate = GateSpanProcessor(given, receiver=Receiver())
        provider.add_span_processor(gate)
        provider.get_tracer("member").start_span("work").end()
        assert not gate.force_flush(2_000)
        provider.shutdown()
        assert sum(gate.losses.values()) == 1
        assert given.get_finished_spans() == ()
        assert "lost" in caplog.text


def test_stock_and_gated_children_share_a_run(agent: Agent) -> None:
    commands: Sequence[Sequence[str]] = (MEMBER, STOCK)

    def both() -> None:
        running = [subprocess.Popen(command) for command in commands]
        assert [program.wait() for program in running] == [0, 0]

    done = agent.does(both)
    assert done.said == "pass"
    assert names(done) == ["agent", "execute_tool edit", "execute_tool lint", "python work"]
