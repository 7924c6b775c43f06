"""Real programs with the SDKs that they have: their spans join the run of whoever started them, or split it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.trace import use_span

from spangate.process import _system
from tests.live.gated import Gated
from tests.process.agent import Agent, Done
from tests.receiver.node_child import node_command, node_environment

STOCK = [sys.executable, str(Path(__file__).with_name("stock_child.py"))]
HEALTHY = ["agent", "execute_tool lint", "python work"]


def names(done: Done) -> list[str]:
    """The names of what left, without the programs themselves."""
    return sorted(span.name for span in done.spans if span not in done.programs)


def start(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class TestPython:
    @pytest.mark.parametrize("how", [[], ["--grpc"]])
    def test_joins(self, agent: Agent, how: Sequence[str]) -> None:
        done = agent.does(lambda: start(*STOCK, *how))
        assert done.said == "pass"
        assert names(done) == HEALTHY
        (program,) = done.programs
        (tool,) = [span for span in done.spans if span.name == "execute_tool lint"]
        assert tool.parent is not None
        assert tool.parent.span_id == program.context.span_id
        assert len({span.context.trace_id for span in done.spans}) == 1

    @pytest.mark.parametrize("how", [[], ["--grpc"]])
    def test_that_ignores_the_context_is_refused(self, agent: Agent, how: Sequence[str]) -> None:
        done = agent.does(lambda: start(*STOCK, "--ignore-context", *how))
        assert done.said == "fail forest.stray_root"
        assert [span.name for span in done.spans] == ["refused agent"]

    def test_packed(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        assert names(agent.does(lambda: start(*STOCK))) == HEALTHY

    def test_and_its_own_child(self, agent: Agent) -> None:
        done = agent.does(lambda: start(*STOCK, "--grandchild"))
        assert done.said == "pass"
        assert names(done) == sorted([*HEALTHY, "execute_tool lint", "python work"])

    def test_that_ends_before_anything_was_sent_leaves_nothing_but_itself(self, agent: Agent) -> None:
        done = agent.does(lambda: start(*STOCK, "--no-flush"))
        assert done.said == "pass"
        assert names(done) == ["agent"]

    def test_that_ends_before_its_own_spans_were_sent_leaves_a_hole(self, agent: Agent) -> None:
        done = agent.does(lambda: start(*STOCK, "--no-flush", "--grandchild"))
        assert "forest.parent_outside_run" in done.said

    def test_that_sends_very_many(self, agent: Agent) -> None:
        done = agent.does(lambda: start(*STOCK, "--spans", "50000"))
        assert done.said == "pass"
        assert len(done.spans) == 50_003

    def test_that_outlives_the_run_is_waited_for(self, agent: Agent) -> None:
        running: list[subprocess.Popen[bytes]] = []
        done = agent.does(lambda: running.append(subprocess.Popen(STOCK)))
        assert done.said == "pass (completeness.outlived_root)"
        assert names(done) == HEALTHY
        running[0].wait()

    def test_whose_receiver_is_gone_when_it_ends(self, gated: Gated, tmp_path: Path) -> None:
        ready = tmp_path / "ready"
        script = (
            f"import pathlib, runpy, sys; sys.stdin.read(); sys.argv = [{STOCK[1]!r}];"
            f"runpy.run_path({STOCK[1]!r}); pathlib.Path({str(ready)!r}).touch()"
        )
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        command, nowhere = [sys.executable, "-c", script], subprocess.DEVNULL
        with use_span(gated.start("agent"), end_on_exit=True):
            program = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=nowhere)
        gated.shutdown()
        assert gated.told == {"agent": "fail completeness.open_span"}
        program.communicate()
        assert program.returncode == 0
        assert ready.exists()


class TestNode:
    @pytest.mark.parametrize("how", [[], ["--grpc"], ["--json"]])
    def test_joins(self, agent: Agent, how: Sequence[str]) -> None:
        command = node_command()
        done = agent.does(lambda: subprocess.run([*command, *how], env=node_environment(), check=True))
        assert done.said == "pass"
        assert names(done) == ["agent", "execute_tool format", "node work"]
        assert {span.resource.attributes.get("telemetry.sdk.language") for span in done.spans} == {None, "nodejs"}

    def test_that_ignores_the_context_is_refused(self, agent: Agent) -> None:
        command = node_command()
        done = agent.does(lambda: subprocess.run([*command, "--ignore-context"], env=node_environment(), check=True))
        assert done.said == "fail forest.stray_root"
        (finding,) = done.verdict.failures
        assert "'node'" in finding.detail


class TestSeveral:
    def test_a_shell_that_starts_some(self, agent: Agent) -> None:
        line = " && ".join([" ".join(STOCK)] * 3)
        done = agent.does(lambda: subprocess.run(line, shell=True, check=True))
        assert done.said == "pass"
        assert names(done) == sorted(["agent", *["execute_tool lint", "python work"] * 3])
        assert len(done.programs) == 1  # the shell: what it starts by itself is no span, but joins below it

    def test_by_system_whose_command_line_holds_no_secret(
        self, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines: list[str] = []

        def told(line: str) -> int:
            lines.append(line)
            return subprocess.run(line, shell=True, check=False).returncode

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(_system, "_SYSTEM", told)
        done = agent.does(lambda: os.system(" ".join(STOCK)))
        assert done.said == "pass"
        assert names(done) == HEALTHY
        assert "Bearer" not in lines[0]
        assert [*tmp_path.iterdir()] == []

    def test_by_system_where_no_file_can_be_written(self, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
        done = agent.does(lambda: os.system(" ".join(["true", *STOCK])))
        assert done.said == "pass"
        assert [(span.attributes or {})["process.exit.code"] for span in done.programs] == [0]

    def test_at_once(self, agent: Agent) -> None:
        def start_all() -> None:
            running = [subprocess.Popen([*STOCK, *how]) for how in ([], ["--grpc"], [], ["--grpc"])]
            assert [program.wait() for program in running] == [0] * 4

        done = agent.does(start_all)
        assert done.said == "pass"
        assert names(done) == sorted(["agent", *["execute_tool lint", "python work"] * 4])
