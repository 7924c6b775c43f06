"""The interpreter's own tests of what is instrumented pass inside a traced run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).with_name("stdlib.py")
EXPECTED = {
    "test_empty_env": "asks for a child without any environment, where a traced one is told its run",
}
"""Tests that look at what is different on purpose, each with what that is."""
MODULES = {"test.test_subprocess": 200, "test.test_asyncio.test_subprocess": 50, "test.test_popen": 3}
"""Each with how many tests there are at least."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", MODULES)
def test_the_standard_librarys_own_tests_pass(module: str) -> None:
    if find_spec("test") is None or find_spec(module) is None:
        if os.environ.get("CI"):
            pytest.fail(f"this Python has no {module}")
        pytest.skip(f"this Python was installed without its own tests, so there is no {module}")
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, RUNNER, module], capture_output=True, text=True, check=False, env=environment, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    failed = [name for name in told["failed"] if name.rpartition(".")[2] not in EXPECTED]
    assert failed == [], done.stderr[-6000:]
    assert told["run"] >= MODULES[module]
