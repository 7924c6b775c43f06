"""The program git, started in a repository: without a shell, a lock, a hook, or the settings of whoever calls us."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from spangate._errors import SpangateError
from spangate.process._cover import Covered

TIMEOUT_S: Final = 60.0
"""How long git may take for an answer."""
_OPTIONS: Final = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "status.renames=false")
"""The monitor is a program that a repository names: it would be run, and believed."""
_KEPT: Final = ("GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_")
"""What of the variables for git may stay; the others send it to another repository, index or object store."""


class GitError(SpangateError):
    """Git is not installed, is not answering, or finds no working tree. The message is one line, for people."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree.

    ``root`` is the top of the working tree. ``ignores_case`` and ``has_modes`` say what git takes its file system for
    (``core.ignorecase``, ``core.filemode``).
    """

    root: str
    ignores_case: bool = False
    has_modes: bool = True

    def ask(self, *arguments: str | bytes) -> bytes:
        """Return what git writes. Raises :class:`GitError`."""
        return _ask(self.root, arguments)

    def path_of(self, name: str) -> Path:
        """Return where a name of the repository stands on disk."""
        return Path(self.root, os.fsdecode(name.encode("utf-8", "surrogateescape")))


def open_repository(path: str | PathLike[str]) -> Repository:
    """Find the repository that ``path``, a directory, is in.

    Raises:
        GitError: there is none, it has no working tree, or git cannot be run.
    """
    directory = str(Path(os.fsdecode(path)).absolute())
    if not Path(directory).is_dir():
        raise GitError(f"{directory} is no directory")
    if _ask(directory, ("rev-parse", "--is-inside-work-tree")).strip() != b"true":
        raise GitError(f"{directory} has no working tree: it is a bare repository, or inside of .git")
    top = _ask(directory, ("rev-parse", "--show-toplevel")).removesuffix(b"\n")
    settings = dict(_settings(directory))
    return Repository(
        os.fsdecode(top),
        ignores_case=settings.get("core.ignorecase") == "true",
        has_modes=settings.get("core.filemode", "true") == "true",
    )


def _settings(directory: str) -> list[tuple[str, str]]:
    """Return names and values of the two settings, as git's own rules make them true or false; the last one holds."""
    arguments = ("config", "-z", "--type=bool", "--includes", "--get-regexp", r"^core\.(ignorecase|filemode)$")
    entries = _ask(directory, arguments, good=(0, 1)).split(b"\0")  # 1: neither is set
    pairs = (entry.decode("utf-8", "replace").partition("\n") for entry in entries if entry)
    return [(name, value) for name, _, value in pairs]


def _ask(directory: str, arguments: Sequence[str | bytes], good: Sequence[int] = (0,)) -> bytes:
    command = ["git", *_OPTIONS, *arguments]
    try:
        with Covered():  # no span of the run, nor a program that nobody watches
            done = subprocess.run(  # noqa: S603  no shell, and git is looked for as the user's own would be
                command,
                cwd=directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise GitError(f"git {_name(arguments)} took more than {TIMEOUT_S:.0f} s in {directory}") from None
    except FileNotFoundError:
        what = "git is not installed" if Path(directory).is_dir() else f"{directory} is gone"
        raise GitError(what) from None
    except OSError as error:
        raise GitError(f"git could not be run in {directory}: {error.strerror or error}") from None
    if done.returncode not in good:
        raise GitError(f"git {_name(arguments)} failed in {directory}: {_reason(done.stderr, done.returncode)}")
    return done.stdout


def _name(arguments: Sequence[str | bytes]) -> str:
    return os.fsdecode(arguments[0])


def _reason(written: bytes, code: int) -> str:
    lines = written.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {code}"


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
