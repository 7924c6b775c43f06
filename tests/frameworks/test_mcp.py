"""An MCP server over stdio: the context crosses in the metadata of JSON-RPC, and the server's spans join the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

AGENT = Path(__file__).with_name("mcp_agent.py")
CALLS = {"grep": 2}


def outcome(*arguments: str) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """Let the agent run, and return what was said of each run, and the spans that have left."""
    command = [sys.executable, str(AGENT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["said"], told["spans"]


def named(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [span for span in spans if span["name"] == name]


def test_a_server_that_the_run_starts_is_in_its_tree() -> None:
    said, spans = outcome()
    assert said == {"invoke_agent one": []}
    assert len({span["context"]["trace_id"] for span in spans}) == 1
    sent = {span["context"]["span_id"] for span in named(spans, "MCP send tools/call grep")}
    answered = named(spans, "tools/call grep")
    assert len(answered) == CALLS["grep"]
    assert {span["parent_id"] for span in answered} == sent
    work = {span["parent_id"] for span in named(spans, "read files")}
    assert work == {span["context"]["span_id"] for span in answered}
    (program,) = [span for span in spans if "process.exit.code" in span["attributes"]]
    assert program["attributes"]["process.exit.code"] == 0


def test_its_answer_to_another_run_is_in_that_one() -> None:
    said, spans = outcome("--other-run")
    assert said == {"invoke_agent one": [], "invoke_agent two": []}
    (other,) = named(spans, "invoke_agent two")
    traces = [span["context"]["trace_id"] for span in named(spans, "tools/call grep")]
    assert sorted(map(traces.count, {*traces})) == [1, 2]
    assert traces.count(other["context"]["trace_id"]) == 1


def test_without_the_context_in_the_metadata_the_run_is_split() -> None:
    said, spans = outcome("--drop-context")
    assert {*said["invoke_agent one"]} == {"forest.stray_root"}
    assert [span["name"] for span in spans] == ["refused invoke_agent one"]
