"""``spangate diff`` on real files: what it answers, in which form, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from spangate import archive
from spangate._run import Run
from tests.compare.runs import PROMPT, agent, call_tool, chat, loop, opened, recorded

RETRIEVE = ("retrieve", {"q": "x"})
RETRIEVE_LATER = ("retrieve", {"q": "y"})
ANSWER = ("answer", {"words": 50})
HOSTILE = "<img src=x>|`a`*b*[l](http://e.org)@you &amp; \x1b[31m\x00\ud800\nend $x$ ~~s~~"

JUNIT: Mapping[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "disabled", "errors"}),
    "testsuite": (
        {"properties", "testcase", "system-out", "system-err"},
        {"name", "tests"},
        {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "disabled",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
        },
    ),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name", "classname"},
        {"name", "classname", "time", "assertions", "status"},
    ),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}
"""What Jenkins' schema of JUnit's XML has inside of which element, which attributes are needed, and which there are."""


def spangate(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", "from spangate.cli import main; main()", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "AGENT_MODEL_ID"},
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with recordings: the same twice, a duplicated call, another query, another prompt."""
    runs = {
        "before": agent([RETRIEVE], [ANSWER]),
        "same": agent([RETRIEVE], [ANSWER]),
        "twice": agent([RETRIEVE], [RETRIEVE], [ANSWER]),
        "drift": agent([RETRIEVE_LATER], [ANSWER]),
        "other": agent([RETRIEVE], [ANSWER], prompt=[*PROMPT, *PROMPT]),
    }
    for name, run in runs.items():
        archive.write_otlp(tmp_path / f"{name}.jsonl", run.spans)
    return tmp_path


def test_a_rerun_that_does_the_same_is_bounded(files: Path) -> None:
    done = spangate("diff", "before.jsonl", "same.jsonl", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("BOUNDED  invoke_agent cook: nothing has changed\n    A  run ")


def test_the_text_names_the_tool_the_digest_and_the_edge(files: Path) -> None:
    done = spangate("diff", "before.jsonl", "drift.jsonl", cwd=files)
    assert done.returncode == 1
    digests = r"digest [0-9a-f]{16} -> [0-9a-f]{16}; span [0-9a-f]{16} -> [0-9a-f]{16}"
    assert re.search(rf"  drift         retrieve in invoke_agent cook: q\n +{digests}\n", done.stdout), done.stdout
    archive.write_otlp(files / "more.jsonl", agent([RETRIEVE], [("rerank", {})], [ANSWER]).spans)
    done = spangate("diff", "before.jsonl", "more.jsonl", cwd=files)
    assert "UNBOUNDED  invoke_agent cook: 1 added, 1 edge added\n" in done.stdout
    assert "  added         rerank in invoke_agent cook\n" in done.stdout
    assert "  edge added    invoke_agent cook > execute_tool rerank\n" in done.stdout


def test_an_allow_file_bounds_it_and_says_why(files: Path) -> None:
    allow = files / "allow.toml"
    allow.write_text(
        'added = [{ name = "retrieve", reason = "asks again", expires = 2999-12-31 }]\n'
        'dropped = [{ name = "lookup", expires = 2001-01-01 }, "answer"]\n'
    )
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--allow", "allow.toml", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert "allowed, asks again, allow.toml:1, until 2999-12-31\n" in done.stdout
    assert "  expired       dropped lookup allows nothing, allow.toml:2, until 2001-01-01\n" in done.stdout
    assert "  unused        dropped answer, allow.toml:2\n" in done.stdout
    allow.write_text('added = [{ name = "retrieve", expires = 2001-01-01 }]')
    assert spangate("diff", "before.jsonl", "twice.jsonl", "--allow", "allow.toml", cwd=files).returncode == 1
    allow.write_text('aded = ["retrieve"]')
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--allow", "allow.toml", cwd=files)
    assert done.returncode == 2
    assert "allow.toml:1: aded: no such key; did you mean added?" in done.stderr


def test_what_cannot_be_compared_ends_with_two_and_without_a_model_with_three(files: Path) -> None:
    done = spangate("diff", "before.jsonl", "other.jsonl", cwd=files)
    assert done.returncode == 2
    assert "REFUSED  invoke_agent cook: the runs cannot be compared: prompt (" in done.stdout
    assert spangate("diff", "before.jsonl", "other.jsonl", "--changed", "prompt", cwd=files).returncode == 0
    lost = [span for span in agent([RETRIEVE]).spans if span.role != "agent"]
    lost[0].parent_id = 77
    archive.write(files / "lost.jsonl", [*agent([RETRIEVE], [ANSWER]).spans, lost[0]])
    done = spangate("diff", "before.jsonl", "lost.jsonl", cwd=files)
    assert (done.returncode, "B is not closed, and is not diffed: forest." in done.stdout) == (2, True)

    def work(provider: Any) -> None:
        with opened(provider.get_tracer("kitchen"), "invoke_agent cook", "invoke_agent"):
            call_tool(provider.get_tracer("kitchen"), "look", {})

    archive.write_otlp(files / "silent.jsonl", recorded(work).spans)
    done = spangate("diff", "silent.jsonl", "silent.jsonl", cwd=files)
    assert (done.returncode, "no_generations" in done.stdout) == (3, True)
    (files / "empty.jsonl").write_text("")
    assert spangate("diff", "before.jsonl", "empty.jsonl", cwd=files).returncode == 3
    done = spangate("diff", "before.jsonl", "gone.jsonl", cwd=files)
    assert (done.returncode, "gone.jsonl: No such file" in done.stderr) == (2, True)


def test_a_run_without_counterpart_is_told(files: Path) -> None:
    both = [*agent([RETRIEVE]).spans, *_with_trace(loop([RETRIEVE], name="waiter"), 77)]
    archive.write_otlp(files / "both.jsonl", both)
    for form in ("text", "json", "markdown", "junit"):
        done = spangate("diff", "both.jsonl", "before.jsonl", "--format", form, cwd=files)
        assert (done.returncode, done.stderr) == (2, "")
        assert "is in both.jsonl and not in before.jsonl" in re.sub(r"\\(.)", r"\1", done.stdout)


def _with_trace(run: Run, trace_id: int) -> Any:
    for span in run.spans:
        span.trace_id = trace_id
    return run.spans


def test_baselines_say_what_varies(files: Path) -> None:
    nightly = files / "nightly"
    nightly.mkdir()
    for night, looks in enumerate((1, 2, 3)):
        archive.write_otlp(nightly / f"{night}.jsonl", agent(*[[RETRIEVE]] * looks, [ANSWER]).spans)
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--baseline", "nightly", cwd=files)
    assert (done.returncode, "the baselines vary in it, too" in done.stdout) == (0, True)
    one = "nightly/0.jsonl"
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--baseline", one, "--baseline", one, cwd=files)
    assert done.returncode == 2
    assert "2 runs named 'invoke_agent cook' among the baselines: what varies is known from 3 runs" in done.stderr
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--baseline", "gone", cwd=files)
    assert (done.returncode, "baseline: gone: No such file" in done.stderr) == (2, True)


def test_json_has_one_object_a_line(files: Path) -> None:
    done = spangate("diff", "before.jsonl", "twice.jsonl", "--format", "json", cwd=files)
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    assert (told["answer"], told["bounded"], told["refusal"], told["reasons"]) == ("unbounded", False, None, [])
    (change,) = told["changes"]
    assert re.fullmatch("[0-9a-f]{16}", change.pop("span_b"))
    assert re.fullmatch("[0-9a-f]{16}", change.pop("digest_b"))
    assert change == {
        "class": "added",
        "name": "retrieve",
        "agent": "invoke_agent cook",
        "count": 1,
        "keys": [],
        "digest_a": None,
        "span_a": None,
        "not_evaluable": None,
        "allowed": None,
        "varies": False,
    }
    assert told["roles"]["tool"] == {"a": 2, "b": 3}
    assert {"edge": "invoke_agent cook > execute_tool retrieve", "a": 1, "b": 2} in told["recounted"]


def test_the_answer_goes_to_a_file_and_a_line_of_it_to_the_terminal(files: Path) -> None:
    done = spangate("diff", "before.jsonl", "twice.jsonl", "-o", "found.txt", cwd=files)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "unbounded: invoke_agent cook: 1 added\n"
    assert (files / "found.txt").read_text().startswith("UNBOUNDED  invoke_agent cook: 1 added\n")
    done = spangate("diff", "before.jsonl", "twice.jsonl", "-o", "gone/found.txt", cwd=files)
    assert (done.returncode, "gone/found.txt: cannot be written" in done.stderr) == (2, True)


def hostile(files: Path) -> None:
    """Write two recordings whose tools have the worst of names."""
    for name, tool in (("plain", "fine"), ("hostile", HOSTILE)):

        def work(provider: Any, tool: str = tool) -> None:
            tracer = provider.get_tracer("kitchen")
            with opened(tracer, "invoke_agent cook", "invoke_agent"):
                chat(tracer, PROMPT, [])
                call_tool(tracer, tool, {"q": 1})

        archive.write(files / f"{name}.jsonl", recorded(work).spans)


def test_markdown_shows_names_as_they_are(files: Path) -> None:
    hostile(files)
    done = spangate("diff", "plain.jsonl", "hostile.jsonl", "--format", "markdown", cwd=files)
    assert (done.returncode, done.stderr) == (1, "")
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parsed.parse(done.stdout)
    cells = [token for token in tokens if token.type == "inline"]
    inside = [child for token in cells for child in token.children or ()]
    kinds = {child.type for child in inside} | {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "em_open", "s_open", "code_inline", "fence", "html_block"}
    assert {child.content for child in inside if child.type == "html_inline"} <= {"<sub>", "</sub>"}
    text = ["".join(child.content for child in token.children or ()) for token in cells]
    assert any(
        one.startswith("<img src=x>|`a`*b*[l](http://e.org)@you &amp; \\x1b[31m\\x00\\ud800\\nend") for one in text
    )
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows == 1 + 4, "a head, two calls and two edges"


def test_junit_is_what_ci_systems_read(files: Path) -> None:
    hostile(files)
    allow = files / "allow.toml"
    allow.write_text('dropped = ["fine"]\nlogs = true')
    cases = {
        ("before.jsonl", "same.jsonl"): (0, 0, 2),
        ("before.jsonl", "other.jsonl"): (0, 1, 8),
        ("plain.jsonl", "hostile.jsonl", "--allow", "allow.toml"): (2, 0, 0),
    }
    for arguments, numbers in cases.items():
        done = spangate("diff", *arguments, "--format", "junit", "-o", "junit.xml", cwd=files)
        assert done.returncode in (0, 1, 2), done.stderr
        root = ET.fromstring((files / "junit.xml").read_bytes())  # noqa: S314  written here
        check(root)
        (suite,) = root
        assert tuple(int(suite.attrib[name]) for name in ("failures", "errors", "skipped")) == numbers
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase")) == 9
        for name in ("failure", "error", "skipped"):
            assert len(suite.findall(f"testcase/{name}")) == numbers[("failure", "error", "skipped").index(name)]
    failed = {case.attrib["name"]: case for case in suite.findall("testcase") if case.find("failure") is not None}
    assert [*failed] == ["added", "edge added"]
    assert HOSTILE[:20] in failed["added"][0].attrib["message"]
    assert "allowed, allow.toml:1" in (suite.findtext("testcase[@name='dropped']/system-out") or "")


def check(element: ET.Element) -> None:
    """See that an element holds what the schema has inside of it."""
    inside, needed, known = JUNIT[element.tag]
    assert {child.tag for child in element} <= inside
    assert needed <= element.attrib.keys() <= known
    for child in element:
        check(child)


def test_colours_are_for_terminals(files: Path) -> None:
    command = [sys.executable, "-c", "from spangate.cli import main; main()", "diff", "before.jsonl", "twice.jsonl"]
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(command, cwd=files, stdout=slave, check=False, timeout=60, env=environment)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 1 << 16):
            shown += piece
    except OSError:  # so Linux says that the other end is closed
        pass
    os.close(master)
    assert done.returncode == 1
    assert b"\x1b[31m\x1b[1mUNBOUNDED" in shown
    assert "\x1b" not in spangate("diff", "before.jsonl", "twice.jsonl", cwd=files).stdout


def test_help_teaches(files: Path) -> None:
    done = spangate("diff", "--help", cwd=files)
    assert done.returncode == 0
    for taught in ("An allow file:", "Exit code:", "Examples:", "JSON has answer", "--baseline", "--changed"):
        assert taught in done.stdout
