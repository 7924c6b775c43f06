"""The demonstration: it runs for real, shows what is exported, and looks the same wherever it is written to."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spangate.cli import demo
from spangate.cli._group import spangate

LIMIT_S = 10
"""What the demonstration promises to take at most."""


@pytest.fixture(scope="module")
def text() -> str:
    result = CliRunner().invoke(spangate, ["demo"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stderr == ""
    return result.stdout


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, Any]]:
    result = CliRunner().invoke(spangate, ["demo", "--format", "json"], catch_exceptions=False)
    assert result.exit_code == 0
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {run["scene"]: run for run in found}


def test_the_three_runs(runs: dict[str, dict[str, Any]]) -> None:
    told = {scene: (run["verdict"], [row["code"] for row in run["findings"]]) for scene, run in runs.items()}
    assert told == {
        "healthy": ("pass", []),
        "lost_context": ("fail", ["forest.stray_root", "forest.stray_root"]),
        "blown_budget": ("fail", ["budget.ceiling"]),
    }


def test_every_run_says_that_it_has_succeeded(runs: dict[str, dict[str, Any]]) -> None:
    assert {run["said"] for run in runs.values()} == {"The tests pass."}


def test_what_is_exported(runs: dict[str, dict[str, Any]]) -> None:
    chat = "chat scripted-model"
    tools = ["execute_tool run_tests", "execute_tool read_file", "execute_tool write_file", "execute_tool run_tests"]
    whole = [*(name for tool in tools for name in (chat, tool)), chat, "invoke_agent fixer"]
    assert {scene: run["exported"] for scene, run in runs.items()} == {
        "healthy": whole,
        "lost_context": ["refused invoke_agent fixer"],
        "blown_budget": ["refused invoke_agent fixer"],
    }


def test_the_tools_are_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = demo.play(demo.SCENES[0])
    results = [(span.attributes or {}).get("gen_ai.tool.call.result") for span in outcome.exported]
    broken = "def total(prices, discount):\n    return sum(prices) - discount\n"
    assert [result for result in results if result is not None] == [
        "1 failed: the total is 20.0, not 27.0 (exit code 1)",
        broken,
        "77 characters written",
        "1 passed (exit code 0)",
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_text_shows_the_tree_of_the_released_run(text: str) -> None:
    _, _, shown = text.partition("Exported:        all 10 spans.")
    assert "agent invoke_agent fixer" in shown
    assert shown.count("─ generation chat scripted-model") == 5
    assert shown.count("─ tool execute_tool run_tests") == 2


def test_the_text_shows_what_stands_in_the_place_of_the_refused_runs(text: str) -> None:
    assert text.count('The agent says:  "The tests pass."\n') == 3
    assert "Exported:        1 span in the place of 10." in text
    assert "Exported:        1 span in the place of 16." in text
    assert "\n    spangate.findings       forest.stray_root\n    spangate.spans_withheld 10\n" in text
    assert "\n    what   input tokens: 2128 > 1500\n" in text


def test_the_text_ends_with_the_line_for_ones_own_provider(text: str) -> None:
    _, _, end = text.partition("What now?")
    assert "    provider.add_span_processor(GateSpanProcessor(OTLPSpanExporter()))\n" in end


def test_no_line_is_wider_than_a_screen(text: str) -> None:
    references = ("run ", "    do ")
    assert [line for line in text.splitlines() if len(line) > 100 and not line.startswith(references)] == []


def test_the_gates_log_is_heard_again_afterwards(text: str) -> None:
    assert text
    assert not any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("spangate").handlers)


PROGRAM = Path(sys.executable).with_name("spangate")


def test_the_real_program_is_quick_and_needs_no_terminal() -> None:
    start = time.monotonic()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([PROGRAM, "demo"], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "|- generation chat scripted-model" in done.stdout
    assert "\x1b" not in done.stdout
    assert time.monotonic() - start < LIMIT_S


@pytest.mark.parametrize(
    ("variable", "value", "code"), [("OTEL_TRACES_SAMPLER", "always_off", 0), ("OTEL_SDK_DISABLED", "true", 1)]
)
def test_settings_of_the_environment_cost_no_traceback(
    variable: str, value: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    result = CliRunner().invoke(spangate, ["demo", "--format", "json"], catch_exceptions=False)
    assert result.exit_code == code
    assert ("OTEL_SDK_DISABLED is set" in result.stderr) == bool(code)


def on_a_terminal(**environment: str) -> str:
    ours, theirs = os.openpty()
    settings = {**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment}
    written = b""
    with subprocess.Popen([PROGRAM, "demo"], env=settings, stdout=theirs, stderr=theirs, stdin=theirs):
        os.close(theirs)
        with contextlib.suppress(OSError):  # that is how the end of a terminal is told
            while more := os.read(ours, 1 << 16):
                written += more
    os.close(ours)
    return written.decode("utf-8")


def test_there_are_colours_on_a_terminal() -> None:
    shown = on_a_terminal()
    assert "\x1b[32m\x1b[1mPASS" in shown
    assert "\x1b[31m\x1b[1mFAIL" in shown
    assert "\x1b[1m2. A lost context" in shown.replace("\r\n", "\n")


def test_there_are_none_for_those_who_want_none() -> None:
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")
