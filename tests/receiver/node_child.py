"""Where Node.js and the stock SDK for it are, for the tests that start programs with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

MODULES: Final = "SPANGATE_NODE_MODULES"
"""The environment variable that names the ``node_modules`` that ``node/package.json`` was installed into."""
_HERE: Final = Path(__file__).parent / "node"
_MISSING: Final = (
    f"needs Node.js and its SDK: copy {_HERE / 'package.json'} to a directory, run npm install there, and set"
    f" {MODULES} to its node_modules"
)


def node_command() -> list[str]:
    """Return the command that starts the child. Skips the test where Node.js is not there; in CI that is a failure."""
    node, modules = shutil.which("node"), Path(os.environ.get(MODULES, "/nowhere"))
    if node is None or not (modules / "@opentelemetry" / "sdk-node").is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    return [node, str(_HERE / "child.js")]


def node_environment() -> Mapping[str, str]:
    """Return the environment in which it finds its modules, and sends nothing but traces."""
    silent = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    return {**os.environ, "NODE_PATH": os.environ.get(MODULES, ""), **silent}
