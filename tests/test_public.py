"""What users may rely on: the public names and modules, and an import that costs little and drags nothing in."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spangate

NAMES = [
    "Finding",
    "Gate",
    "GateLogRecordProcessor",
    "GateSpanProcessor",
    "Run",
    "Span",
    "SpangateError",
    "Verdict",
    "__version__",
    "attach_parent",
    "default_gates",
    "generation",
    "install",
    "judge",
    "load_policy",
    "run",
    "strict_gates",
]
MODULES = ["archive", "cli", "compare", "files", "gates", "ledger", "process", "testing", "wire"]
GATES = [
    "Budget",
    "Cardinality",
    "Causality",
    "Completeness",
    "Exits",
    "Fingerprints",
    "Forest",
    "Halt",
    "Retries",
    "Timing",
    "Worktree",
    "Policy",
    "GATES",
    "default_gates",
    "strict_gates",
]

HEAVY = {"click", "google", "grpc", "msgspec", "pytest", "requests", "rich", "tomllib", "urllib3"}

IMPORT = """
import json, sys, time
start = time.process_time()
import opentelemetry.metrics, opentelemetry.sdk._logs.export, opentelemetry.sdk.trace.export
sdk = time.process_time()
import spangate
for name in spangate.__all__:
    getattr(spangate, name)
own = time.process_time()
print(json.dumps({"sdk": sdk - start, "own": own - sdk, "modules": sorted(sys.modules)}))
"""


def test_the_names() -> None:
    assert sorted(spangate.__all__) == sorted(NAMES)
    assert [name for name in NAMES if not hasattr(spangate, name)] == []


def test_the_modules() -> None:
    assert [name for _, name, _ in pkgutil.iter_modules(spangate.__path__) if not name.startswith("_")] == MODULES


def test_the_gates() -> None:
    assert sorted(importlib.import_module("spangate.gates").__all__) == sorted(GATES)


@pytest.mark.parametrize("module", ["archive", "compare", "files", "gates", "ledger", "process", "testing", "wire"])
def test_a_public_module_says_what_is_public_in_it(module: str) -> None:
    public = importlib.import_module(f"spangate.{module}")
    assert [name for name in public.__all__ if getattr(public, name).__doc__ is None] == []


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Import spangate twice in a fresh interpreter, and tell of the second time: the first compiles."""
    options = ["-X", f"pycache_prefix={tmp_path_factory.mktemp('bytecode')}"]
    environment = {"PYTHONDONTWRITEBYTECODE": "", "PATH": ""}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, *options, "-c", IMPORT],
            env=environment,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_importing_drags_nothing_heavy_in(imported: dict[str, Any]) -> None:
    assert {module.partition(".")[0] for module in imported["modules"]} & HEAVY == set()


def test_importing_costs_little_beside_the_sdk_beneath(imported: dict[str, Any]) -> None:
    assert imported["own"] < 2 * imported["sdk"]
