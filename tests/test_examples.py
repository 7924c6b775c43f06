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
    "pydantic_ai_agent.py": [
        "invoke_agent umbrella: pass",
        "exported: execute_tool weather\n",
        "invoke_agent umbrella: fail",
        "budget.ceiling: input tokens: ",
        " > 100\n  exported: refused invoke_agent umbrella\n",
    ],
}


ELSEWHERE = {"coding_agent.py"}
"""What needs a gate around it, and has one in ``test_run_command.py``."""


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {name.split()[0] for name in SAYS} | ELSEWHERE


@pytest.mark.parametrize("name", SAYS)
def test_it_says_what_it_promises(name: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name.split(maxsplit=1)[0], *name.split()[1:]],
        env={**os.environ, "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = [done.stdout.find(text) for text in SAYS[name]]
    assert -1 not in found, done.stdout
    assert found == sorted(found)


@pytest.mark.parametrize("name", [*SAYS, *ELSEWHERE])
def test_it_is_read_at_a_glance(name: str) -> None:
    assert len((EXAMPLES / name.split(maxsplit=1)[0]).read_text(encoding="utf-8").splitlines()) <= MAX_LINES
