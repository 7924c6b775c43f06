"""What becomes of log records when a program just ends: the SDK shuts both providers down, the newer one first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "program.py"


def ended(*arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("order", ["logs-first", "spans-first"])
@pytest.mark.parametrize(("how", "code"), [("returns", 0), ("exits", 3)])
def test_nothing_is_lost(order: str, how: str, code: int) -> None:
    status, lines = ended(order, how)
    assert status == code
    assert sorted(lines) == sorted(["log before", "log inside", "span agent", "logs are shut down"])


@pytest.mark.parametrize("order", ["logs-first", "spans-first"])
def test_a_refused_run_leaves_no_line(order: str) -> None:
    status, lines = ended(order, "leaks")
    assert status == 0
    assert [line for line in lines if line.startswith("span")] == ["span refused agent"]
    assert "log before" in lines
    assert "log inside" not in lines
    assert lines.count("logs are shut down") == 1
