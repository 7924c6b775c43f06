"""Runs that change a working tree, with a real provider and a real repository: what is owned, and what is not known."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import use_span

from spangate import Verdict, default_gates, files, process
from spangate.gates import Policy, Worktree
from spangate.process import Receiver
from spangate.testing import GatedProvider
from tests.live.gated import Gated
from tests.repositories import SETTINGS, Workshop

FILES = {"a": "a", "b": "b", "dir/c": "c"}


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    yield
    files.use_provider(None)


@pytest.fixture
def work(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "repo", FILES)


@pytest.fixture
def gated(work: Workshop) -> Gated:
    return gated_by(Worktree(repo=work.root))


def gated_by(gate: Worktree, **settings: Any) -> Gated:
    provider = Gated(gates=[*default_gates(), gate], **settings)
    files.use_provider(provider)
    return provider


@contextmanager
def run_of(gated: Gated, name: str = "agent") -> Iterator[Span]:
    with gated.open("agent", name) as span, use_span(span):
        yield span


def verdict_of(gated: Gated, name: str = "agent") -> Verdict:
    assert gated.flush()
    (verdict,) = [verdict for verdict in gated.verdicts if verdict.run_name == name]
    return verdict


def told(verdict: Verdict) -> list[str]:
    """Return what the gate found: codes without the gate, and why it was not evaluable."""
    found = [finding.code.removeprefix("worktree.") for finding in verdict.failures if finding.gate == "worktree"]
    gaps = [gap.detail for gap in verdict.gaps if gap.gate == "worktree"]
    assert verdict.gates["worktree"] == ("fail" if found else "not_evaluable" if gaps else "pass")
    return [*found, *gaps]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def call_of(gated: Gated, tool: str, arguments: dict[str, Any] | None, under: Any) -> Span:
    attributes = {"gen_ai.tool.name": tool}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    return gated.start("tool", f"execute_tool {tool}", under, attributes=attributes)


class Slow:
    """A git that waits until it is let go, and counts how often it was asked for the status."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = directory / "closed"
        self.asked = directory / "asked"
        real = shutil.which("git")
        fake = directory / "git"
        fake.write_text(
            f"#!/bin/sh\nfor word; do [ $word = status ] && echo >>{self.asked}; done\n"
            f'while [ -e {self.gate} ]; do sleep 0.01; done\nexec {real} "$@"\n'
        )
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")

    def close(self) -> None:
        self.gate.touch()

    def open(self) -> None:
        self.gate.unlink()

    @property
    def count(self) -> int:
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    (tmp_path / "bin").mkdir()
    return Slow(tmp_path / "bin", monkeypatch)


def looked(gated: Gated) -> None:
    """Wait until the look that is being taken is over."""
    witness = gated.gate._witness
    assert witness is not None
    gated.until(lambda: not witness._looker._is_at_work)


class TestAHealthyRun:
    def test_passes_with_three_files_changed(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            files.write(work.root, "a", "A")
            files.write(work.root, "new/d", "d")
            files.delete(work.root, "b")
        assert told(verdict_of(gated)) == []
        assert sorted(gated.names) == ["agent", "files.delete", "files.write", "files.write"]

    def test_passes_whose_tree_was_dirty_before(self, work: Workshop) -> None:
        work.put("a", "dirty")
        work.put("untracked", "x")
        (work.root / "b").unlink()
        gated = gated_by(Worktree(repo=work.root))
        with run_of(gated):
            files.write(work.root, "untracked", "y")
        assert told(verdict_of(gated)) == []

    def test_passes_that_commits(self, work: Workshop, gated: Gated) -> None:
        work.put("untracked", "x")
        with run_of(gated):
            files.write(work.root, "a", "A")
            work.commit()
            files.write(work.root, "b", "B")
            files.move(work.root, "dir/c", "d")
            work.commit()
        assert told(verdict_of(gated)) == []

    def test_passes_with_names_of_all_kinds(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            for name in ("a b", "c\nd", "ü", '"', b"caf\xe9"):
                files.write(work.root, name, "x")
        assert told(verdict_of(gated)) == []
        assert verdict_of(gated).verdict == "pass"

    def test_passes_with_what_a_tool_declares(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated), files.tool(work.root, outputs=["dist/*.js"]):
            subprocess.run("mkdir dist; echo 1 >dist/a.js; echo 2 >dist/b.js", shell=True, cwd=work.root, check=True)
        assert told(verdict_of(gated)) == []

    def test_passes_with_the_clock_of_tests(self, work: Workshop) -> None:
        with GatedProvider([*default_gates(), Worktree(repo=work.root)]) as provider:
            files.use_provider(provider)
            tracer = provider.get_tracer("t")
            for text in "xyz":
                with tracer.start_as_current_span("run", attributes={"gen_ai.operation.name": "invoke_agent"}):
                    files.write(work.root, "a", text)
        provider.assert_released()
        assert [told(verdict) for verdict in provider.verdicts] == [[], [], []]

    def test_that_writes_from_many_threads(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated) as agent:

            def act(number: int) -> None:
                with use_span(agent):
                    for turn in range(5):
                        files.write(work.root, f"{number % 2}", f"{number} {turn}")

            threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert told(verdict_of(gated)) == []


class TestFinds:
    def test_an_edit_behind_the_tools(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            files.write(work.root, "a", "A")
            work.put("b", "B")
        assert told(verdict_of(gated)) == ["ghost"]
        assert gated.names == ["refused agent"]
        assert "b has changed" in verdict_of(gated).failures[0].detail

    def test_an_edit_of_what_was_dirty_already(self, work: Workshop) -> None:
        work.put("a", "dirty")
        work.put("untracked", "x")
        gated = gated_by(Worktree(repo=work.root))
        with run_of(gated):
            looked(gated)
            work.put("a", "dirtier")
            work.put("untracked", "y")
        assert told(verdict_of(gated)) == ["ghost", "ghost"]

    def test_an_edit_that_was_committed(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            looked(gated)
            work.put("a", "A")
            work.commit()
        assert told(verdict_of(gated)) == ["ghost"]

    def test_a_span_that_lies(self, gated: Gated) -> None:
        with run_of(gated) as agent:
            looked(gated)
            lie = {"op": "write", "path": "a", "after_hash": sha("A")}
            gated.ended("tool", "edit", agent, attributes=lie)
        assert told(verdict_of(gated)) == ["phantom"]

    def test_a_formatter_that_no_span_tells_of(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            files.write(work.root, "a", "A")
            work.put("a", "A\n")
        assert told(verdict_of(gated)) == ["hash_mismatch"]

    def test_a_run_that_changed_nothing_though_it_should(self, work: Workshop) -> None:
        gated = gated_by(Worktree(repo=work.root, require_mutation=True))
        with run_of(gated):
            pass
        assert told(verdict_of(gated)) == ["no_mutation"]

    def test_ignored_files_where_the_policy_says_so(self, work: Workshop) -> None:
        work.put(".gitignore", "*.log\n")
        for ignored, found in ((False, []), (True, ["ghost"])):
            gated = gated_by(Worktree(repo=work.root, ignored=ignored))
            with run_of(gated):
                looked(gated)
                work.put("x.log", str(ignored))
            assert told(verdict_of(gated)) == found

    def test_what_is_outside_of_the_allowed(self, work: Workshop) -> None:
        gated = gated_by(Worktree(repo=work.root, allow=("*.log",)))
        with run_of(gated):
            looked(gated)
            work.put("dir/x.log", "x")
            work.put("x.lag", "x")
        assert told(verdict_of(gated)) == ["ghost"]


class TestToolsOfATable:
    @pytest.fixture
    def gated(self, work: Workshop) -> Gated:
        return gated_by(Worktree(repo=work.root, writers={"write_file": "path", "patch": "file.name"}))

    def write(self, work: Workshop, gated: Gated, agent: Span, path: str, text: str) -> None:
        with use_span(call_of(gated, "write_file", {"path": path}, agent), end_on_exit=True):
            work.put(path, text)

    def test_own_what_they_write(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated) as agent:
            looked(gated)
            self.write(work, gated, agent, "a", "A")
            self.write(work, gated, agent, str(work.root / "new"), "x")
            with use_span(call_of(gated, "patch", {"file": {"name": "b"}}, agent), end_on_exit=True):
                (work.root / "b").unlink()
        assert told(verdict_of(gated)) == []

    @pytest.mark.parametrize("size", [1, 3 << 20], ids=["small", "large"])
    def test_are_held_to_what_was_there_when_they_ended(self, work: Workshop, gated: Gated, size: int) -> None:
        with run_of(gated) as agent:
            looked(gated)
            self.write(work, gated, agent, "a", "A" * size)
            looked(gated)
            work.put("a", "B" * size)
        assert told(verdict_of(gated)) == ["hash_mismatch"]

    def test_of_which_a_large_file_is_gone_before_it_was_hashed_own_it(self, work: Workshop, slow: Slow) -> None:
        gated = gated_by(Worktree(repo=work.root, writers={"write_file": "path"}))
        with run_of(gated) as agent:
            looked(gated)
            slow.close()
            witness = gated.gate._witness
            assert witness is not None
            witness._looker.ask()
            self.write(work, gated, agent, "a", "A" * (3 << 20))
            work.put("a", "B")
            slow.open()
            looked(gated)
            work.put("a", "C")
        assert told(verdict_of(gated)) == []

    def test_are_known_by_arguments_that_come_at_the_end(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated) as agent:
            looked(gated)
            span = call_of(gated, "write_file", None, agent)
            work.put("a", "A")
            span.set_attribute("gen_ai.tool.call.arguments", '{"path": "a"}')
            span.end()
        assert told(verdict_of(gated)) == []

    def test_may_name_a_path_through_a_link(self, work: Workshop, gated: Gated) -> None:
        (work.root / "link").symlink_to("dir")
        work.commit()
        with run_of(gated) as agent:
            looked(gated)
            self.write(work, gated, agent, "link/c", "C")
        assert told(verdict_of(gated)) == []

    def test_that_write_elsewhere_own_nothing_here(self, work: Workshop, gated: Gated, tmp_path: Path) -> None:
        with run_of(gated) as agent:
            looked(gated)
            self.write(work, gated, agent, str(tmp_path / "a"), "x")
        assert told(verdict_of(gated)) == []

    def test_without_arguments_are_not_evaluable(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated) as agent:
            looked(gated)
            call_of(gated, "write_file", None, agent).end()
            work.put("a", "A")
        assert told(verdict_of(gated)) == ["its span does not say which file it was to write"]

    def test_that_fail_half_way_own_their_path(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated) as agent:
            looked(gated)
            with suppress(OSError), use_span(call_of(gated, "write_file", {"path": "a"}, agent), end_on_exit=True):
                work.put("a", "ha")
                raise OSError
            gated.ended("generation", "chat", agent)
            work.put("a", "half")
        assert told(verdict_of(gated)) == []


class TestOneRunAfterTheOther:
    def test_each_has_its_own_changes(self, work: Workshop, gated: Gated) -> None:
        for number in range(6):
            with run_of(gated, f"run {number}"):
                files.write(work.root, "a", str(number))
                if number == 3:
                    work.put("b", "ghost")
        gated.until(lambda: len(gated.verdicts) == 6)
        assert [told(verdict) for verdict in gated.verdicts] == [[], [], [], ["ghost"], [], []]

    def test_what_a_person_edits_in_between_is_no_ghost(self, work: Workshop, gated: Gated) -> None:
        for number in range(3):
            with run_of(gated, f"run {number}"):
                files.write(work.root, "a", str(number))
            assert told(verdict_of(gated, f"run {number}")) == []
            work.put("b", f"by hand {number}")

    def test_what_the_next_one_writes_is_not_laid_to_the_first(self, work: Workshop) -> None:
        gated = gated_by(Worktree(repo=work.root), settle_s=0.5)
        with run_of(gated, "first"):
            files.write(work.root, "a", "1")
        with run_of(gated, "second"):
            files.write(work.root, "a", "2")
            files.write(work.root, "b", "2")
            gated.until(lambda: gated.verdicts)
        assert told(verdict_of(gated, "first")) == []
        assert told(verdict_of(gated, "second")) == []

    def test_what_it_writes_over_a_commit_of_the_first_is_not_either(self, work: Workshop) -> None:
        gated = gated_by(Worktree(repo=work.root), settle_s=0.5)
        with run_of(gated, "first"):
            files.write(work.root, "a", "1")
            work.commit()
        with run_of(gated, "second"):
            files.write(work.root, "a", "2")
            gated.until(lambda: gated.verdicts)
        assert told(verdict_of(gated, "first")) == []
        assert told(verdict_of(gated, "second")) == []

    def test_a_lie_is_found_though_the_next_one_has_begun(self, work: Workshop) -> None:
        gated = gated_by(Worktree(repo=work.root), settle_s=0.5)
        with run_of(gated, "first") as agent:
            looked(gated)
            gated.ended("tool", "edit", agent, attributes={"op": "write", "path": "n", "after_hash": sha("A")})
        with run_of(gated, "second"):
            files.write(work.root, "b", "2")
            gated.until(lambda: gated.verdicts)
        assert told(verdict_of(gated, "first")) == ["phantom"]
        assert told(verdict_of(gated, "second")) == []


class TestNotEvaluable:
    def test_two_runs_at_once(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated, "one"):
            with gated.open("agent", "two") as two, use_span(two):
                files.write(work.root, "a", "A")
            gated.until(lambda: gated.verdicts)
        for name in ("one", "two"):
            (why,) = told(verdict_of(gated, name))
            assert "another run went on at the same time" in why

    def test_not_where_only_one_of_two_traces_is_a_run(self, work: Workshop, gated: Gated) -> None:
        with gated.open("other", "GET /health"), run_of(gated):
            gated.ended("other", "tick")
            files.write(work.root, "a", "A")
        assert told(verdict_of(gated)) == []

    def test_two_agents_below_one_request(self, work: Workshop, gated: Gated) -> None:
        with gated.open("entry", "POST /chat") as request:
            with gated.open("agent", "first", request) as first, use_span(first):
                files.write(work.root, "a", "A")
            gated.until(lambda: gated.verdicts)
            with gated.open("agent", "second", request) as second, use_span(second):
                files.write(work.root, "b", "B")
        assert told(verdict_of(gated, "first")) == []
        assert "share its request" in told(verdict_of(gated, "second"))[0]

    def test_a_repository_that_vanishes(self, work: Workshop, gated: Gated) -> None:
        with run_of(gated):
            looked(gated)
            shutil.rmtree(work.root)
        assert "is gone" in told(verdict_of(gated))[0]

    def test_no_repository(self, tmp_path: Path) -> None:
        gated = gated_by(Worktree(repo=tmp_path))
        with run_of(gated):
            pass
        assert "not a git repository" in told(verdict_of(gated))[0]

    def test_no_git_which_is_logged_once(
        self, work: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("PATH", str(work.root))
        gated = gated_by(Worktree(repo=work.root))
        for name in ("one", "two"):
            with run_of(gated, name):
                pass
            assert told(verdict_of(gated, name)) == ["git is not installed"]
        assert caplog.text.count("git is not installed") == 1

    def test_it_is_a_failure_where_the_gate_is_required(self, tmp_path: Path) -> None:
        gated = Gated(gates=[Worktree(repo=tmp_path), Policy(require=["worktree"])])
        with run_of(gated):
            pass
        assert [finding.code for finding in verdict_of(gated).failures] == ["gate.not_evaluable"]


class TestASlowGit:
    def test_keeps_nobody_waiting_but_the_files_of_ours(self, work: Workshop, slow: Slow) -> None:
        slow.close()
        start = time.monotonic()
        gated = gated_by(Worktree(repo=work.root))
        with run_of(gated) as agent:
            gated.ended("tool", "look", agent)
            assert time.monotonic() - start < 1.0

            def act() -> None:
                with use_span(agent):
                    files.write(work.root, "a", "A")

            thread = threading.Thread(target=act)
            thread.start()
            gated.until(lambda: slow.count == 0 and thread.is_alive())
            assert (work.root / "a").read_text() == "a"
            slow.open()
            thread.join()
            assert (work.root / "a").read_text() == "A"
        assert told(verdict_of(gated)) == []

    @pytest.mark.parametrize(("ghosts", "found"), [([], []), (["b"], ["too soon"])], ids=["owned", "with a ghost"])
    def test_and_a_tool_that_writes_before_it_answers(
        self, work: Workshop, slow: Slow, ghosts: list[str], found: list[str]
    ) -> None:
        gated = gated_by(Worktree(repo=work.root, writers={"write_file": "path"}))
        looked(gated)
        slow.close()
        with run_of(gated) as agent, use_span(call_of(gated, "write_file", {"path": "a"}, agent), end_on_exit=True):
            for path in ["a", *ghosts]:
                work.put(path, "x")
            slow.open()
            looked(gated)
        soon = ["too soon" if "began to write before" in what else what for what in told(verdict_of(gated))]
        assert soon == found

    def test_with_nothing_to_go_back_to(self, work: Workshop, slow: Slow) -> None:
        slow.close()
        gated = gated_by(Worktree(repo=work.root, writers={"write_file": "path"}))
        with run_of(gated) as agent, use_span(call_of(gated, "write_file", {"path": "a"}, agent), end_on_exit=True):
            work.put("a", "A")
            slow.open()
            looked(gated)
        assert "began to write before" in told(verdict_of(gated))[0]

    def test_is_not_asked_once_for_each_of_many_traces(self, work: Workshop, slow: Slow) -> None:
        gated = gated_by(Worktree(repo=work.root))
        looked(gated)
        slow.close()
        for _ in range(500):
            gated.ended("other", "GET /")
        slow.open()
        looked(gated)
        assert slow.count <= 4


def test_a_child_program_may_write(work: Workshop) -> None:
    gated = gated_by(Worktree(repo=work.root), receiver=Receiver(), grace_s=2.0)
    program = (
        "import sys\nfrom opentelemetry import trace\nfrom opentelemetry.sdk.trace import TracerProvider\n"
        "import spangate\nfrom spangate import files\n"
        "provider = TracerProvider()\nprovider.add_span_processor(spangate.GateSpanProcessor())\n"
        "trace.set_tracer_provider(provider)\nspangate.attach_parent()\n"
        "files.write(sys.argv[1], 'a', 'A')\nprovider.shutdown()\n"
    )
    process.use_provider(gated)
    try:
        with run_of(gated):
            looked(gated)
            process.run([sys.executable, "-c", program, str(work.root)], check=True)
    finally:
        process.use_provider(None)
    assert told(verdict_of(gated)) == []
    assert "files.write" in gated.names


AGENT = """
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
import spangate
from spangate import files

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
spangate.attach_parent()
with provider.get_tracer("t").start_as_current_span("run", attributes={"gen_ai.operation.name": "invoke_agent"}):
    files.write(".", "a", "A")
    for path in sys.argv[1:]:
        open(path, "w").close()
provider.shutdown()
"""


@pytest.mark.parametrize(("ghosts", "code"), [((), 0), (("ghost",), 70)])
def test_a_whole_command_is_held_to_the_tree(
    work: Workshop, tmp_path: Path, ghosts: tuple[str, ...], code: int
) -> None:
    policy = tmp_path / "gates.toml"
    policy.write_text(f'[worktree]\nrepo = "{work.root}"\n')
    command = ["-c", "from spangate.cli import main; main()", "run", "--policy", str(policy), "--", sys.executable]
    done = subprocess.run(
        [sys.executable, *command, "-c", AGENT, *ghosts],
        cwd=work.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert ("worktree.ghost" in done.stderr) == bool(ghosts)


def test_a_forked_child_looks_for_itself(work: Workshop) -> None:
    program = """
import os, sys
from spangate import files
from spangate.gates import Worktree
from spangate.testing import GatedProvider

root = sys.argv[1]
provider = GatedProvider([Worktree(repo=root)])
files.use_provider(provider)
tracer = provider.get_tracer("t")
agent = {"gen_ai.operation.name": "invoke_agent"}
with tracer.start_as_current_span("parent", attributes=agent):
    files.write(root, "a", "A")
provider.settle()
child = os.fork()
if not child:
    with tracer.start_as_current_span("child", attributes=agent):
        files.write(root, "b", "B")
    provider.settle()
    print([(verdict.run_name, dict(verdict.gates)["worktree"]) for verdict in provider.verdicts], flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(work.root)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "[('parent', 'pass'), ('child', 'pass')]\n", done.stderr


def test_who_does_not_ask_pays_nothing() -> None:
    gated = Gated(gates=default_gates())
    assert "on_end" not in vars(gated.gate)
    assert "place" not in vars(gated.gate._placer)
    imports = "import sys, spangate; spangate.GateSpanProcessor(); print('spangate._git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


PATHS = st.sampled_from(["a", "b", "c", "d/e", "d/f", "g h"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, st.sampled_from(["", "x", "y"])),
        st.tuples(st.just("delete"), PATHS, st.just("")),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("commit"), st.just(""), st.just("")),
    ),
    max_size=8,
)


def act(work: Workshop, step: tuple[str, str, str]) -> None:
    what, path, other = step
    with suppress(FileNotFoundError):
        if what == "commit":
            work.commit()
        elif what == "write":
            files.write(work.root, path, other)
        elif what == "delete":
            files.delete(work.root, path)
        else:
            files.move(work.root, path, other)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(before=STEPS, during=STEPS, ghost=st.none() | PATHS, at=st.integers(0, 8))
def test_the_law(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, str, str]],
    during: list[tuple[str, str, str]],
    ghost: str | None,
    at: int,
) -> None:
    """Whatever runs do through the functions, the gate is silent; of a change behind them it finds exactly that."""
    work = Workshop(tmp_path_factory.mktemp("law"), {"a": "a", "b": "b", "d/e": "e"})
    for step in before:
        act(work, step)
    provider = GatedProvider([Worktree(repo=work.root)])
    files.use_provider(provider)
    tracer = provider.get_tracer("t")
    touched = {path for step in during for path in step[1:]}
    with tracer.start_as_current_span("run", attributes={"gen_ai.operation.name": "invoke_agent"}):
        files.write(work.root, "first", "x")
        for number, step in enumerate([*during, ("commit", "", "")][: len(during) + 1]):
            if number == min(at, len(during)) and ghost is not None and ghost not in touched:
                work.put(ghost, "ghost")
            if number < len(during):
                act(work, step)
    provider.shutdown()
    (verdict,) = provider.verdicts
    found = [finding.detail.split(" has ")[0].strip("'") for finding in verdict.failures]
    assert found == ([] if ghost is None or ghost in touched else [ghost])
    assert verdict.gates["worktree"] == ("fail" if found else "pass")
