from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from spangate import archive
from spangate._dialects import classify
from spangate._records import Finding, Span
from spangate._verdict.text import plain
from spangate.cli import NEEDS_EXTRA, _console
from spangate.cli._console import Progress, style_of
from spangate.cli._group import COMMANDS, spangate
from spangate.cli._tree_report import MAX_RAILS, rows
from tests.otlp import otlp_line, otlp_span
from tests.spans import run_of, span

DATA = Path(__file__).parent / "data" / "otlp"
REAL = str(DATA / "langchain-oi-fail.jsonl.gz")


def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(spangate, list(arguments), input=stdin)


def agent(trace: int = 1, **fields: Any) -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", **fields.pop("attributes", {})}
    return span("agent", "invoke_agent helper", trace_id=trace, end=10.0, attributes=attributes, **fields)


def generation(parent: Span, **fields: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": '[{"role": "user", "content": "hi"}]',
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 20,
    }
    return span("generation", "chat m", parent=parent, attributes=attributes, **fields)


def tool(parent: Span, **fields: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    return span("tool", "execute_tool search", **{"parent": parent, "attributes": attributes, **fields})


def healthy(trace: int = 1) -> list[Span]:
    root = agent(trace)
    return [root, generation(root), tool(root), generation(root, start=2.0, end=3.0)]


def leaking(trace: int = 1) -> list[Span]:
    root = agent(trace)
    return [root, generation(root), tool(root, end=None), generation(root, start=2.0, end=3.0)]


def recording(tmp_path: Path, *runs: list[Span], name: str = "runs.jsonl") -> str:
    archive.write(tmp_path / name, [span for run in runs for span in run])
    return str(tmp_path / name)


class TestCheck:
    def test_every_run_passes(self, tmp_path: Path) -> None:
        result = invoke("check", recording(tmp_path, healthy(1), healthy(2)))
        assert result.exit_code == 0
        assert result.stdout.splitlines()[-1].startswith("2 runs: 2 passed")
        assert result.stderr == ""

    def test_a_run_fails(self, tmp_path: Path) -> None:
        result = invoke("check", recording(tmp_path, healthy(1), leaking(2)))
        assert result.exit_code == 1
        assert "completeness.open_span" in result.stdout
        assert "2 runs: 1 passed" in result.stdout

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "there is nothing at all"),
            (otlp_line(otlp_span(name="GET /", attributes=[])), "there is 1 span, none of them of an agent"),
        ],
    )
    def test_no_run_is_no_pass(self, tmp_path: Path, content: bytes, said: str) -> None:
        path = tmp_path / "file"
        path.write_bytes(content)
        result = invoke("check", str(path))
        assert result.exit_code == 3
        assert result.stdout == ""
        assert result.stderr == f"no agent run in the input: {said}\n"

    def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_judged(self, tmp_path: Path) -> None:
        bad = tmp_path / "bad.jsonl"
        bad.write_text('{"resourceSpans": []}\n{"resourceSpans": [\n')
        missing = str(tmp_path / "missing.jsonl")
        result = invoke("check", str(bad), missing, recording(tmp_path, leaking()))
        assert result.exit_code == 2
        assert "1 run: 0 passed, 1 failed" in result.stdout
        assert result.stderr.splitlines() == [
            f"error: {bad}: line 2: not JSON at character 20: Expecting value",
            f"error: {missing}: No such file or directory",
        ]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["check"], "Missing argument 'FILE...'"),
            (["check", "--format", "xml", REAL], "'xml' is not one of 'text', 'json'"),
            (["check", "--policy", "/nowhere/gates.toml", REAL], "/nowhere/gates.toml: cannot be read"),
            (["chekc", REAL], "No such command 'chekc'"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], said: str) -> None:
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert said in result.stderr

    def test_a_policy_decides(self, tmp_path: Path) -> None:
        policy = tmp_path / "gates.toml"
        policy.write_text("[budget]\nmax_input_tokens = 100\n")
        assert invoke("check", recording(tmp_path, healthy())).exit_code == 0
        result = invoke("check", "--policy", str(policy), recording(tmp_path, healthy()))
        assert result.exit_code == 1
        assert "budget.ceiling" in result.stdout

    def test_a_tool_that_a_policy_names_and_no_run_has_is_told(self, tmp_path: Path) -> None:
        archive.write_otlp(tmp_path / "runs.jsonl", healthy())
        policy = tmp_path / "gates.toml"
        policy.write_text('[exits]\nprocess_tools = ["serach", "search"]\n[retries]\nexempt = ["poll_*", "sea*"]\n')
        done = invoke("check", "--policy", str(policy), str(tmp_path / "runs.jsonl"))
        assert done.exit_code == 0
        assert done.stderr.splitlines() == [
            "note: the policy names the tool serach (exits), and no run has one of that name",
            "note: the policy names the tool poll_* (retries), and no run has one of that name",
        ]

    def test_a_wrong_policy_names_the_key(self, tmp_path: Path) -> None:
        policy = tmp_path / "gates.toml"
        policy.write_text("[budget]\nmax_input_token = 100\n")
        result = invoke("check", "--policy", str(policy), REAL)
        assert result.exit_code == 2
        assert "did you mean max_input_tokens?" in " ".join(result.stderr.split())

    def test_standard_input(self) -> None:
        result = invoke("check", "-", stdin=gzip.decompress(Path(REAL).read_bytes()))
        assert result.exit_code == 0
        assert "1 run: 1 passed" in result.stdout

    def test_a_recording_cut_short_is_told_and_judged(self, tmp_path: Path) -> None:
        path = Path(recording(tmp_path, healthy()))
        path.write_bytes(path.read_bytes()[:-10])
        result = invoke("check", str(path))
        assert result.exit_code == 1
        assert result.stderr.startswith(f"note: {path}: line ")
        assert "completeness.open_span" in result.stdout

    def test_a_fault_is_explained_once_and_its_runs_are_gathered(self, tmp_path: Path) -> None:
        result = invoke("check", recording(tmp_path, *(leaking(trace) for trace in range(1, 6)), healthy(9)))
        assert result.stdout.count("    do     ") == 1
        assert result.stdout.count("(as before: cluster ") == 4
        summary = result.stdout[result.stdout.index("6 runs: 1 passed") :].splitlines()
        assert summary[0].endswith("5 failed")
        assert "5 runs: completeness.open_span" in summary[1]
        assert "and 2 more" in summary[2]

    def test_verbose_explains_every_run(self, tmp_path: Path) -> None:
        result = invoke("check", "-v", recording(tmp_path, leaking(1), leaking(2), healthy(3)))
        assert result.stdout.count("    do     ") == 2
        assert "PASS  invoke_agent helper" in result.stdout

    def test_quiet_says_the_summary_alone(self, tmp_path: Path) -> None:
        result = invoke("check", "-q", recording(tmp_path, leaking(1), healthy(2)))
        assert result.exit_code == 1
        assert result.stdout.startswith("2 runs: 1 passed")

    def test_warnings_are_counted_by_runs(self, tmp_path: Path) -> None:
        root = agent()
        failed = [tool(root, status="ERROR"), tool(root, status="ERROR")]
        result = invoke(
            "check", recording(tmp_path, [root, generation(root), *failed, generation(root, start=2.0, end=3.0)])
        )
        assert "(1 with warnings)" in result.stdout
        assert "  warning  completeness.recovered_error in 1 run\n" in result.stdout


class TestCheckJson:
    def test_one_object_a_run_with_these_keys(self, tmp_path: Path) -> None:
        result = invoke("check", "--format", "json", recording(tmp_path, healthy(1), leaking(2)))
        assert result.exit_code == 1
        good, bad = (json.loads(line) for line in result.stdout.splitlines())
        keys = ["run_id", "trace_id", "root", "verdict", "trigger", "findings", "gates", "totals", "cluster"]
        assert list(good) == list(bad) == keys
        assert (good["verdict"], good["trace_id"], good["root"]) == ("pass", f"{1:032x}", "invoke_agent helper")
        assert (good["trigger"], good["cluster"]) == ("offline", None)
        assert good["gates"]["completeness"] == "pass"
        assert good["totals"]["input_tokens"] == 240
        assert bad["verdict"] == "fail"
        assert bad["gates"]["completeness"] == "fail"
        (finding,) = (finding for finding in bad["findings"] if finding["level"] == "fail")
        assert list(finding) == ["code", "level", "span_id", "span_name", "detail"]
        assert (finding["code"], finding["span_name"]) == ("completeness.open_span", "execute_tool search")

    def test_the_same_fault_has_the_same_cluster(self, tmp_path: Path) -> None:
        result = invoke("check", "--format", "json", recording(tmp_path, leaking(1), leaking(2)))
        clusters = {json.loads(line)["cluster"] for line in result.stdout.splitlines()}
        assert len(clusters) == 1
        assert clusters != {None}

    def test_whatever_a_span_is_called_the_line_is_ascii(self, tmp_path: Path) -> None:
        root = agent()
        runs = [replace(root, name="ä\ud83e\x1b[31m\n"), generation(root)]
        result = invoke("check", "--format", "json", recording(tmp_path, runs))
        assert result.stdout.isascii()
        assert json.loads(result.stdout)["root"] == "ä\ud83e\x1b[31m\n"


class TestTree:
    def test_a_run_is_shown_span_by_span_with_what_is_wrong(self, tmp_path: Path) -> None:
        root = agent()
        broken = tool(root, end=None)
        path = recording(tmp_path, [root, generation(root), broken, generation(root, start=2.0, end=3.5)])
        result = invoke("tree", path)
        assert result.exit_code == 0
        lines = result.stdout.splitlines()
        assert lines[0] == "FAIL  invoke_agent helper"
        assert lines[2:6] == [
            "agent invoke_agent helper  10 s",
            "├─ generation chat m  1 s  120 in, 20 out",
            "├─ tool execute_tool search  open",
            "│     x completeness.open_span: " + lines[5].partition(": ")[2],
        ]
        assert lines[6] == "└─ generation chat m  1.5 s  120 in, 20 out"

    def test_real_runs(self) -> None:
        result = invoke("tree", REAL)
        assert result.exit_code == 0
        assert "│  └─ tool flaky" in result.stdout
        assert "! completeness.recovered_error" in result.stdout

    def test_json(self, tmp_path: Path) -> None:
        result = invoke("tree", "--format", "json", recording(tmp_path, leaking()))
        assert result.exit_code == 0
        tree = json.loads(result.stdout)
        assert list(tree) == ["run_id", "trace_id", "root", "verdict", "spans"]
        root, first, leaked, _ = tree["spans"]
        assert (root["depth"], root["parent_id"], root["role"]) == (0, None, "agent")
        assert (first["depth"], first["parent_id"]) == (1, root["span_id"])
        assert (first["input_tokens"], first["output_tokens"]) == (120, 20)
        assert (leaked["duration_ns"], leaked["findings"]) == (None, ["completeness.open_span"])

    def test_a_count_that_is_no_number_stays_visible(self, tmp_path: Path) -> None:
        root = agent(attributes={"gen_ai.usage.input_tokens": float("nan")})
        result = invoke("tree", "--format", "json", recording(tmp_path, [root]))
        assert json.loads(result.stdout)["spans"][0]["input_tokens"] == "nan"

    def test_unreadable(self, tmp_path: Path) -> None:
        result = invoke("tree", str(tmp_path))
        assert result.exit_code == 2
        assert result.stderr == f"error: {tmp_path}: Is a directory\n"

    def test_no_run(self, tmp_path: Path) -> None:
        path = tmp_path / "empty"
        path.touch()
        result = invoke("tree", str(path))
        assert result.exit_code == 0
        assert "no agent run in the input" in result.stderr

    def test_ascii_where_the_stream_knows_no_more(self, tmp_path: Path) -> None:
        runner = CliRunner(charset="ascii")
        result = runner.invoke(spangate, ["tree", recording(tmp_path, healthy())])
        assert "|- generation" in result.stdout
        assert "`- generation" in result.stdout


def shape(*spans: Span) -> list[tuple[int, int]]:
    return [(row.span.span_id, row.depth) for row in rows(run_of(list(spans)))]


class TestRows:
    def test_children_stand_below_their_parent_in_the_order_of_their_starts(self) -> None:
        root = span(span_id=1)
        first, second = span(parent=root, span_id=2), span(parent=root, span_id=3)
        below = span(parent=first, span_id=4)
        assert shape(root, first, second, below) == [(1, 0), (2, 1), (4, 2), (3, 1)]

    def test_what_hangs_elsewhere_comes_after_the_root_s_tree(self) -> None:
        root = span(span_id=1)
        assert shape(root, span(span_id=2, parent_id=99), span(span_id=3, trace_id=7)) == [(1, 0), (2, 0), (3, 0)]

    def test_a_cycle_is_shown_once(self) -> None:
        root = span(span_id=1)
        assert shape(root, span(span_id=2, parent_id=3), span(span_id=3, parent_id=2)) == [(1, 0), (2, 0), (3, 1)]

    def test_a_chain_of_any_length_is_indented_up_to_a_bound(self) -> None:
        chain = [span(span_id=1)]
        for number in range(2, 5000):
            chain.append(span(parent=chain[-1], span_id=number))
        found = list(rows(run_of(chain)))
        assert found[-1].depth == 4998
        assert len(found[-1].lasts) == MAX_RAILS


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestConsole:
    def test_colours_on_a_terminal_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        assert click.unstyle(style_of(Terminal())("FAIL", "fail")) == "FAIL"
        assert style_of(Terminal())("FAIL", "fail") != "FAIL"
        assert style_of(io.StringIO()) is plain

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_no_colours_where_nobody_wants_them(self, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv(name, value)
        assert style_of(Terminal()) is plain

    def test_progress_shows_on_a_terminal_for_long_input_and_goes_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        progress = Progress("runs.jsonl")
        hook = progress.hook()
        assert hook is not None
        hook(1, 1000)
        progress.clear()
        assert terminal.getvalue() == ""
        hook(1 << 30, 1 << 31)
        progress.clear()
        progress.clear()
        assert terminal.getvalue() == "\rruns.jsonl: 50 %\r\x1b[K"

    def test_no_progress_in_a_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        assert Progress("runs.jsonl").hook() is None

    def test_exit_codes(self) -> None:
        codes = _console.PASSED, _console.FAILED, _console.UNREADABLE, _console.NO_RUN
        assert codes == (0, 1, 2, 3)


@pytest.mark.parametrize("arguments", [[], ["check"], ["tree"]])
def test_help_teaches_by_examples_on_lines_of_their_own(arguments: list[str]) -> None:
    result = invoke(*arguments, "--help")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "  Examples:" in lines
    assert len([line for line in lines if line.startswith("    spangate ")]) >= 3
    assert "\b" not in result.stdout
    assert r"\b" not in result.stdout


def test_help_lists_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for command, sentence in COMMANDS.items():
        assert f"  {command} " in result.stdout
        assert sentence in " ".join(result.stdout.split())


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


SLOW = {"opentelemetry", "google", "msgspec", "rich", "requests", "asyncio", "http"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"], ["tree", "--help"]])
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    result = fresh(
        "import sys\n"
        f"sys.argv = ['spangate', *{arguments!r}]\n"
        "from spangate.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    assert result.returncode == 0
    imported = {name.partition(".")[0] for name in result.stderr.split()}
    assert "click" in imported
    assert imported & SLOW == set()


def test_without_the_extra_one_line_says_what_to_install() -> None:
    result = fresh("import sys; sys.modules['click'] = None\nfrom spangate.cli import main\nmain()")
    assert result.returncode == 2
    assert result.stderr == f"{NEEDS_EXTRA}\n"
    assert "pip install 'spangate[cli]'" in NEEDS_EXTRA


def test_findings_of_no_span_stand_below_the_head(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_run: object) -> list[Finding]:
        raise RuntimeError

    monkeypatch.setattr("spangate.gates.default_gates", lambda: (broken,))
    result = invoke("tree", recording(tmp_path, healthy()))
    assert result.stdout.splitlines()[2].startswith("x gate.error: broken raised RuntimeError")


def test_the_builders_make_what_they_say() -> None:
    spans = leaking()
    for each in spans:
        expected = each.role
        classify(each)
        assert each.role == expected
