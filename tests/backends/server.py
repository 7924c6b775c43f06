"""A backend as a child process, from an environment of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.environments import environment

PATIENCE_S = 120.0
"""A first start makes a database."""


@contextmanager
def served(name: str, command: Sequence[str], folder: Path, health: str, settings: Mapping[str, str]) -> Iterator[None]:
    """Run ``command`` of the environment ``name`` as long as the block, which begins when ``health`` answers."""
    found = environment(name)
    log = folder / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [found.script(command[0]), *command[1:]],
            env=found.variables(PYTHONPATH="", **settings),
            cwd=folder,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(health):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1.0) as answer:  # noqa: S310  always the loopback address
            return bool(answer.status == 200)
    except (URLError, HTTPException, OSError):
        return False
