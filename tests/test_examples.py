"""Every example runs as it stands, offline and without a warning, and says what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
MAX_LINES = 60

SAYS = {
    "causality.py": ["invoke_agent cook: pass, causality pass\n"],
    "causality.py --broken": [
        "invoke_agent cook: fail, causality fail\n",
        "causality.unordered_writers: 'execute_tool write_file' (0000000000000003), ",
        "both write 'a.py', and no causes put them in order\n",
    ],
    "ci_check.py": ["1 run: 1 passed, 0 failed\nexit code 0\n", "budget.ceiling", "exit code 1\n"],
    "diff.py": [
        "BOUNDED  agent.run: 1 allowed\n",
        "drift         search in agent.run librarian: query\n",
        "allowed, a year, ",
        "exit code 0\n",
    ],
    "diff.py --broken": [
        "UNBOUNDED  agent.run: 1 added, 1 allowed\n",
        "  added         search",
        "exit code 1\n",
    ],
    "fingerprint.py": ["pass\nchat small: fingerprint.source = explicit\n", "chat small: fingerprint.tuple = "],
    "fingerprint.py --broken": ["fail fingerprints.missing_prompt: in 1 of 1 model call the prompt has no hash"],
    "loop.py": ["pass\n", "agent.iter 4\n", "agent.halt done\n  agent.run\n"],
    "loop.py --broken": ["fail halt.missing: 4 iteration(s), and no halt says", "\n  refused agent.run\n"],
    "compact.py": [
        "spangate.payload_raw_sha256.gen_ai.tool.call.result = ",
        "spangate.payload_schema.gen_ai.tool.call.result = ",
        "spangate.payload_sha256.gen_ai.tool.call.result = ",
        'kept here: b\'{"count": 3, "timestamp": "08:00"}\'\n',
        "the second run differs: data\n",
    ],
    "compact.py --broken": ["the second run differs: contract drift\n"],
    "one_line.py": ["invoke_agent cook  pass", "refused invoke_agent cook  fail  ['completeness.open_span']\n"],
    "own_gate.py": ["search  pass\n", "shell  fail  house.no_shell: no agent of ours may use a shell\n"],
    "policy.py": ["fail\nbudget.ceiling: search: max_calls: 3 > 2\n"],
    "programs.py": [
        "exit 0: status UNSET\nexit 1: status ERROR\n",
        '"exit_count": 2, "close_count": 2, "leaks": 0, "orphans": 0, "status_mismatches": 0,',
        "mismatch: the span says ok, the program ended with 1\npass\n",
    ],
    "timing.py": ["pass\n"],
    "timing.py --broken": ["fail timing.untraced: ", "is untraced, more than 50.0%; the longest hole is "],
    "working_tree.py": ["worktree: pass\n"],
    "working_tree.py --broken": ["worktree: fail\nworktree.ghost: config.toml has appeared, and no closed span"],
    "pydantic_ai_agent.py": [
        "invoke_agent umbrella: pass",
        "exported: execute_tool weather\n",
        "invoke_agent umbrella: fail",
        "budget.ceiling: input tokens: ",
        " > 100\n  exported: refused invoke_agent umbrella\n",
    ],
    "record_replay.py": ["recorded: It is sunny.\nreplayed: It is sunny.\nthe same digest: True\n"],
    "record_replay.py --broken": [
        "0 of 3 decisions agreed before it; nearest is llm:",
        "$.messages[0].content: 'What is the weather in Paris?' was recorded, 'How is Paris?' is here\n",
    ],
    "retry_veto.py": [
        "tests: exit 1\ntests: exit 0\n",
        "tests: exit 1\nblocked: the same call failed with exit code 1, on this very tree\n",
    ],
}


LONGER = {"coding_agent.py": 130}
"""What shows many things at once, with the lines that it may have."""

AGENT = "coding_agent.py"
BREAKS = {
    "--behind-the-tools": "worktree.ghost",
    "--no-halt": "halt.missing",
    "--lie": "exits.tool_disagrees",
    "--repeat": "retries.repeated_failure",
    "--unordered": "causality.unordered_writers",
    "--spend": "budget.ceiling",
    "--ignore-context": "forest.stray_root",
}
"""What each switch of the coding agent breaks. With a gate around it, it is in ``test_run_command.py``."""


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {command.split()[0] for command in SAYS} | {AGENT}


@pytest.mark.parametrize("command", SAYS)
def test_it_says_what_it_promises(command: str, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = [done.stdout.find(text) for text in SAYS[command]]
    assert -1 not in found, done.stdout
    assert found == sorted(found)


def test_the_coding_agent_passes(tmp_path: Path) -> None:
    done = run(AGENT, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "pass"), done.stderr


@pytest.mark.parametrize("switch", BREAKS)
def test_the_coding_agent_is_refused_for_one_thing(switch: str, tmp_path: Path) -> None:
    done = run(f"{AGENT} {switch}", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"fail {BREAKS[switch]}"), done.stderr


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    name, *arguments = command.split()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        env={**os.environ, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_it_is_read_at_a_glance(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= LONGER.get(name, MAX_LINES)
