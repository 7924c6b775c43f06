"""Real git repositories for tests, each with an identity and without anybody's own settings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Workshop:
    """A repository with one commit, and short ways to change it."""

    def __init__(self, root: Path, files: Mapping[str, str] | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "Test")
        self.git("config", "user.email", "test@example.org")
        if files is not None:
            for name, text in files.items():
                self.put(name, text)
            self.commit()

    def git(self, *arguments: str | bytes) -> str:
        """Run git there and return what it writes."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.root,
            env={**environment, **SETTINGS},
            capture_output=True,
            check=True,
        ).stdout.decode()

    def put(self, name: str, text: str | bytes) -> None:
        """Write a file behind everybody's back."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self) -> None:
        """Commit all that is there."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "work")
