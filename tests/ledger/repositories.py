"""Real git repositories for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")


def repository(at: Path) -> Path:
    """Make a repository with one commit, of one file, ``a``."""
    at.mkdir()
    (at / "a").write_text("one\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "."], [*AUTHOR, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=at, check=True, capture_output=True)
    return at
