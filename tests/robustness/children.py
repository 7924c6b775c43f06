"""Runs the programs of :mod:`tests.robustness.program` and reads what left them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100.0


@dataclass(frozen=True)
class Child:
    """How a program ended, and what left it."""

    code: int
    lines: Sequence[dict[str, Any]]
    errors: str

    @property
    def spans(self) -> Sequence[dict[str, Any]]:
        return [line for line in self.lines if "name" in line]

    @property
    def told(self) -> dict[str, str]:
        """What each verdict says, by the name of the span that bears it: ``pass`` or ``fail``, then the codes."""
        return {span["name"]: " ".join([span["verdict"], *span["findings"]]) for span in self.spans if span["verdict"]}

    def names(self, *, pid: int | None = None) -> list[str]:
        return [span["name"] for span in self.spans if pid in (None, span["pid"])]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("event") == name]

    def event(self, name: str) -> dict[str, Any]:
        (event,) = self.events(name)
        return event


def run(program: str, *numbers: int) -> Child:
    """Run a program to its end. It must end in time."""
    command = [sys.executable, "-W", "error", "-m", "tests.robustness.program", program, *map(str, numbers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return Child(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)
