"""How long it takes to look at a large working tree, and to see what has changed: wall time beside git's own."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from spangate._git import Repository, changes, open_repository, take
from tests.benchmarks._rows import Row

LIMIT: Final = 1.3
FILES, A_DIRECTORY, CHANGED = 100_000, 100, 20
TURNS: Final = 15
_SETTINGS: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def rows() -> Iterator[Row]:
    """Compare the look that a run ends with, and the comparison, with ``git status``, turn by turn."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _make(root)
        repository = open_repository(root)
        before = take(repository)
        for number in range(CHANGED):
            (root / f"{number}" / "0.txt").write_text("changed")
            (root / f"{number}" / "new.txt").write_text("new")

        def ours() -> None:
            assert len(changes(repository, before, take(repository))) == 2 * CHANGED

        turns = [(_wall(ours), _wall(lambda: _status(repository))) for _ in range(TURNS + 1)][1:]
    theirs = median(plain for _, plain in turns)
    yield Row(
        benchmark="worktree",
        measured=f"a tree of {FILES:,} files, {2 * CHANGED} changed",
        unit="ms",
        ours=theirs * median(own / plain for own, plain in turns),
        peer="git status",
        theirs=theirs,
        limit=LIMIT,
    )


def _make(root: Path) -> None:
    for number in range(FILES):
        if number % A_DIRECTORY == 0:
            (root / f"{number // A_DIRECTORY}").mkdir()
        (root / f"{number // A_DIRECTORY}" / f"{number % A_DIRECTORY}.txt").write_text(f"{number}\n")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "start"], ["status"]):
        subprocess.run(
            ["git", *command], cwd=root, env={**os.environ, **_SETTINGS}, check=True, stdout=subprocess.DEVNULL
        )


def _status(repository: Repository) -> None:
    command = ["git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=all"]
    subprocess.run(command, cwd=repository.root, env={**os.environ, **_SETTINGS}, check=True, capture_output=True)


def _wall(act: Callable[[], None]) -> float:
    """Return the milliseconds that something takes."""
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3
