"""``spangate run``: a command as it would run by itself, and the verdict on what it and its programs recorded."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.otlp_sink import Sink, http_sink
from tests.receiver.node_child import MODULES, node_command

EXAMPLES = Path(__file__).parents[1] / "examples"
AGENT = EXAMPLES / "coding_agent.py"
MEMBER = Path(__file__).parent / "receiver" / "member.py"
STOCK = Path(__file__).parent / "receiver" / "stock_child.py"
RUN = [str(Path(sys.executable).with_name("spangate")), "run"]


def environment(**more: str) -> dict[str, str]:
    known = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANGATE_RUN"))}
    return {**known, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **more}


def run(
    *arguments: str | Path, more: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    told = {"capture_output": True, "text": True, "timeout": 60, **options}
    command, env = [*RUN, *map(str, arguments)], environment(**(more or {}))
    done: subprocess.CompletedProcess[str] = subprocess.run(command, check=False, env=env, **told)
    return done


def collector(sink: Sink) -> dict[str, str]:
    """Return the environment in which a user has set up a collector."""
    return {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": sink.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def python(code: str, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return run(*options, "--", sys.executable, "-c", code, **more)


class TestTheCommandNoticesNothing:
    def test_streams_are_its_own(self) -> None:
        echo = "import sys; print(sys.stdin.read().upper()); print('oops', file=sys.stderr)"
        done = python(echo, input="said")
        assert done.stdout == "SAID\n"
        assert done.stderr.startswith("oops\n")

    def test_bytes_pass_as_they_are(self) -> None:
        body = bytes(range(256)) * 100
        done = python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", input=body, text=False)
        assert done.stdout == body  # type: ignore[comparison-overlap]  # text=False makes them bytes

    def test_arguments_pass_as_they_are(self) -> None:
        told = ["--policy", "x", "-q", "--", "a b", "*", ""]
        done = run("--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *told)
        assert done.stdout == f"{told}\n"

    def test_the_separator_may_be_left_out(self) -> None:
        assert run(sys.executable, "-c", "print(1)").stdout == "1\n"

    @pytest.mark.parametrize("code", [0, 1, 3, 255])
    def test_its_exit_code_is_the_exit_code(self, code: int) -> None:
        assert python(f"raise SystemExit({code})").returncode == code

    def test_a_signal_that_ended_it_is_told_as_shells_do(self) -> None:
        done = python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        assert done.returncode == 128 + signal.SIGKILL

    def test_a_command_that_is_not_there(self) -> None:
        done = run("--", "/nonexistent/agent")
        assert done.returncode == 127
        assert done.stderr == "spangate run: /nonexistent/agent: No such file or directory\n"

    def test_a_command_that_may_not_be_run(self, tmp_path: Path) -> None:
        (tmp_path / "agent").touch()
        assert run("--", tmp_path / "agent").returncode == 126

    def test_an_option_that_is_none_is_a_wrong_usage(self) -> None:
        done = run("--polcy", "x", "--", "true")
        assert done.returncode == 2
        assert "No such option" in done.stderr
        assert "--policy" in done.stderr

    def test_no_command_is_a_wrong_usage(self) -> None:
        done = run()
        assert done.returncode == 2
        assert "CMD" in done.stderr

    def test_the_variables_that_it_finds(self) -> None:
        told = python("import json, os; print(json.dumps(dict(os.environ)))", more={"OTEL_TRACES_EXPORTER": "console"})
        found = json.loads(told.stdout)
        assert found["SPANGATE_ATTACH"] == "1"
        assert found["OTEL_TRACES_EXPORTER"] == "console"
        assert found["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].startswith(found["SPANGATE_RECEIVER"])
        assert {"TRACEPARENT", "SPANGATE_RUN_ID", "SPANGATE_INVOCATION_ID"} < {*found}


WAITING = """
import signal, sys
def handle(number, _frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(9)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, handle)
print("ready", flush=True)
signal.pause()
"""


class TestSignals:
    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
    def test_are_passed_on(self, name: str) -> None:
        command = [*RUN, "--", sys.executable, "-c", WAITING]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        program = subprocess.Popen(
            command,
            text=True,
            env=environment(),
            preexec_fn=_heeds_signals,  # noqa: PLW1509  this process has no thread that could hold a lock
            **pipes,  # type: ignore[call-overload]
        )
        assert program.stdout.readline() == "ready\n"
        program.send_signal(getattr(signal, name))
        out, err = program.communicate(timeout=30)
        assert (out, program.returncode) == (f"{name}\n", 9)
        assert "Traceback" not in err

    def test_a_key_at_the_terminal_reaches_the_command_once(self) -> None:
        child, terminal = pty.fork()
        if child == 0:
            code = (
                "import signal, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
                "print('ready', flush=True)\nwhile not seen: time.sleep(0.01)\n"
                "time.sleep(0.3)\nprint('seen', len(seen), flush=True)"
            )
            os.execve(RUN[0], [*RUN, "--", sys.executable, "-c", code], environment())  # noqa: S606  it is a test
        said = _read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        said = _read_until(terminal, b"seen")
        assert b"seen 1" in said
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(status) == 0


def _heeds_signals() -> None:
    """Ignore nothing, as tests in the background or under ``nohup`` do, and whatever they start."""
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def _read_until(terminal: int, word: bytes) -> bytes:
    said = b""
    while word not in said or not said.endswith(b"\n"):
        ready, _, _ = select.select([terminal], [], [], 30)
        assert ready, said
        said += os.read(terminal, 1024)
    return said


class TestVerdicts:
    def test_a_healthy_agent(self, tmp_path: Path) -> None:
        done = run("--json", tmp_path / "verdict", "--", sys.executable, AGENT)
        assert done.returncode == 0, done.stderr
        assert "test, lint" in done.stdout
        (verdict,) = map(json.loads, (tmp_path / "verdict").read_text().splitlines())
        assert (verdict["verdict"], failures(verdict)) == ("pass", [])
        assert verdict["totals"]["spans_started"] >= 8
        assert "pass: run " in done.stderr

    def test_one_tree_of_python_and_node(self, tmp_path: Path) -> None:
        node_command()
        agent = _agent_with_node(tmp_path)
        with http_sink() as sink:
            done = run("--", sys.executable, agent, more=collector(sink))
        assert done.returncode == 0, done.stderr
        assert "test, lint, accept." in done.stdout
        spans = sink.spans
        assert len({span.trace_id for span in spans}) == 1
        ids = {span.span_id for span in spans}
        (root,) = [span.name for span in spans if span.parent_span_id not in ids]
        assert {"lint prices.py", "test prices", "node", "agent.run"} < {*sink.names}
        assert sink.attributes(root)["spangate.verdict"] == "pass"

    def test_a_child_that_ignores_the_context(self, tmp_path: Path) -> None:
        with http_sink() as sink:
            command = (sys.executable, AGENT, "--ignore-context")
            done = run("--json", tmp_path / "v", "--", *command, more=collector(sink))
        assert done.returncode == 70
        assert "forest.stray_root" in done.stderr
        assert "All done" in done.stdout
        (verdict,) = map(json.loads, (tmp_path / "v").read_text().splitlines())
        assert [finding["code"] for finding in verdict["findings"] if finding["level"] == "fail"] == [
            "forest.stray_root"
        ]
        assert [name.partition(" ")[0] for name in sink.names] == ["refused"]

    def test_an_agent_that_honours_nothing_is_judged_by_itself(self, tmp_path: Path) -> None:
        done = run("--json", tmp_path / "v", "--", sys.executable, STOCK, "--ignore-context")
        assert done.returncode == 0, done.stderr
        (verdict,) = map(json.loads, (tmp_path / "v").read_text().splitlines())
        assert (verdict["root"], verdict["verdict"]) == ("execute_tool lint", "pass")

    def test_an_agent_with_a_gate_of_its_own_is_judged_once(self, tmp_path: Path) -> None:
        done = run("--json", tmp_path / "v", "--", sys.executable, MEMBER, "--leak")
        assert done.returncode == 70
        (verdict,) = map(json.loads, (tmp_path / "v").read_text().splitlines())
        assert [finding["code"] for finding in verdict["findings"]] == ["completeness.open_span"]
        assert done.stdout == ""

    def test_a_failure_that_it_admits_is_its_own_affair(self, tmp_path: Path) -> None:
        done = run("--json", tmp_path / "v", "--", sys.executable, MEMBER, "--exit", "4")
        assert done.returncode == 4, done.stderr
        assert json.loads((tmp_path / "v").read_text())["verdict"] == "pass"

    def test_a_policy_decides(self, tmp_path: Path) -> None:
        (tmp_path / "gates.toml").write_text("[budget]\nmax_input_tokens = 10\n")
        done = run("--policy", tmp_path / "gates.toml", "--", sys.executable, AGENT)
        assert done.returncode == 70
        assert "budget.ceiling" in done.stderr

    def test_a_trace_that_the_job_has_begun_is_continued(self) -> None:
        parent = {"TRACEPARENT": f"00-{'a' * 32}-{'b' * 16}-01"}
        with http_sink() as sink:
            done = run("--", sys.executable, STOCK, more={**collector(sink), **parent})
        assert done.returncode == 0, done.stderr
        assert {span.trace_id.hex() for span in sink.spans} == {"a" * 32}
        assert "b" * 16 in {span.parent_span_id.hex() for span in sink.spans}

    def test_quiet_says_nothing_of_what_passes(self) -> None:
        assert run("-q", "--", sys.executable, STOCK).stderr == ""

    def test_inside_another_run_nothing_is_judged_twice(self, tmp_path: Path) -> None:
        inner = [*RUN, "--json", str(tmp_path / "inner"), "--", sys.executable, str(STOCK)]
        done = run("--json", tmp_path / "outer", "--", *inner)
        assert done.returncode == 0, done.stderr
        assert "part of run" in done.stderr
        assert (tmp_path / "inner").read_text() == ""
        (verdict,) = map(json.loads, (tmp_path / "outer").read_text().splitlines())
        assert verdict["verdict"] == "pass"
        assert verdict["totals"]["spans_started"] == 6  # two commands with a root each, and what the inner one recorded


def failures(verdict: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in verdict["findings"] if finding["level"] == "fail"]


def _agent_with_node(folder: Path) -> Path:
    """Copy the example to where the modules of Node.js may be put beside it."""
    tools = folder / "coding_agent_tools"
    tools.mkdir()
    for path in (EXAMPLES / "coding_agent_tools").iterdir():
        if path.is_file():
            (tools / path.name).write_text(path.read_text())
    (tools / "node_modules").symlink_to(Path(os.environ[MODULES]))
    (folder / AGENT.name).write_text(AGENT.read_text())
    return folder / AGENT.name


def test_a_file_that_cannot_be_written_is_told_before_anything_is_run(tmp_path: Path) -> None:
    done = python("print('ran')", "--json", str(tmp_path / "nowhere" / "v"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such file" in done.stderr


class TestNoRun:
    def test_says_what_to_set(self) -> None:
        done = python("pass")
        assert done.returncode == 0
        assert "no run: the command has sent no span" in done.stderr
        assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in done.stderr
        assert "opentelemetry-instrument" in done.stderr

    def test_may_be_a_failure(self) -> None:
        assert python("pass", "--require-run").returncode == 70

    def test_tells_spans_from_agents(self, tmp_path: Path) -> None:
        script = tmp_path / "plain.py"
        script.write_text(STOCK.read_text().replace('"gen_ai.', '"app.'))
        done = run("--", sys.executable, script)
        assert "no run: 2 spans came, none of them an agent's" in done.stderr

    def test_says_that_the_sdk_is_off(self) -> None:
        done = run("--", sys.executable, STOCK, more={"OTEL_SDK_DISABLED": "true"})
        assert done.returncode == 0
        assert "OTEL_SDK_DISABLED" in done.stderr
