"""Virtual environments for what cannot be installed beside the rest: vendors that exclude each other, older SDKs.

They are kept below the directory that ``SPANGATE_TEST_ENVIRONMENTS`` names, outside of the tree, one for each list of
requirements. ``python -m tests.environments [NAME…]`` makes them before the tests do. What is tested is not installed
there: programs find it, with its entry points, by the ``PYTHONPATH`` of :meth:`Environment.variables`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

DIRECTORY: Final = "SPANGATE_TEST_ENVIRONMENTS"
"""The variable that says where they are kept."""
SECONDS: Final = 900
"""How long making one may take: the time limit of a test that needs one (``pytest.mark.timeout``)."""
ROOT: Final = Path(__file__).parents[1]

REQUIREMENTS: Final = {
    "oldest-sdk": ("opentelemetry-sdk==1.39.1", "opentelemetry-exporter-otlp==1.39.1", "opentelemetry-distro==0.60b1"),
    "newest-sdk": (
        *("opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp==1.45.2", "opentelemetry-distro==0.66b2"),
        *("opentelemetry-configuration==0.66b2", "gunicorn==27.0.1", "uvicorn==0.54.0"),
    ),
    "phoenix": ("arize-phoenix==20.26.1",),
    "mlflow": ("mlflow==3.17.2",),
}
"""What each needs beside the dependencies of spangate itself. Only what is pinned stays what it is."""


@dataclass(frozen=True)
class Environment:
    """One that is there: its interpreter, and how programs are run by it."""

    python: Path

    def script(self, name: str) -> Path:
        """Return the path of a command that a package has installed."""
        return self.python.with_name(name)

    def variables(self, **more: str) -> dict[str, str]:
        """Return an environment in which programs find spangate and its entry points, the commands of this one first.

        Nothing of OpenTelemetry's or of spangate's own settings is taken from whoever runs the tests.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANGATE_"))}
        path = f"{self.python.parent}{os.pathsep}{own.get('PATH', os.defpath)}"
        found = os.pathsep.join((str(ROOT / "src"), _metadata().name))
        return {**own, "PATH": path, "PYTHONPATH": found, **more}


def environment(name: str) -> Environment:
    """Return the environment of that name, made if it is not there yet.

    Skips the test if nothing says where environments are kept; fails it where ``CI`` is set.
    """
    kept = os.environ.get(DIRECTORY)
    if kept is None:
        reason = f"{DIRECTORY} does not say where environments of other packages are kept"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return made(name, Path(kept))


def made(name: str, kept: Path) -> Environment:
    """Return the environment of that name below ``kept``. Whoever comes while it is being made waits for it."""
    wanted = (*_dependencies(), *REQUIREMENTS[name])
    said = "\n".join((sys.version, sys.base_prefix, *wanted))
    home = kept.resolve() / f"{name}-{hashlib.sha256(said.encode()).hexdigest()[:16]}"
    kept.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            with suppress(FileNotFoundError):
                shutil.rmtree(home)
            _make(home, wanted)
            (home / "complete").write_text("\n".join(wanted))
    return Environment(home / "bin" / "python")


def _make(home: Path, wanted: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    install = [f"{home}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(wanted)} cannot be installed:\n{done.stdout}{done.stderr}")


def _dependencies() -> list[str]:
    """Return what spangate itself needs, without its extras."""
    return sorted(one for one in distribution("spangate").requires or () if "extra ==" not in one)


@cache
def _metadata() -> TemporaryDirectory[str]:
    """Return a directory with nothing in it but what tells of spangate's entry points."""
    directory = TemporaryDirectory(prefix="spangate-metadata-")
    found = distribution("spangate")
    home = Path(directory.name) / f"spangate-{found.version}.dist-info"
    home.mkdir()
    for file in ("METADATA", "entry_points.txt"):
        (home / file).write_text(found.read_text(file) or "")
    return directory


if __name__ == "__main__":
    for chosen in sys.argv[1:] or REQUIREMENTS:
        began = time.monotonic()
        made(chosen, Path(os.environ[DIRECTORY]))
        print(f"{chosen}: there, after {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201  it is a command
