"""The program that is recorded or replayed, by the commit of the repository that it is in."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

from spangate._git.call import GitError, open_repository
from spangate.tape._cassette import Header


class Harness(NamedTuple):
    """Its commit and whether its working tree has changes; None of what is not known."""

    commit: str | None
    dirty: bool | None


def harness_of(path: str | PathLike[str]) -> Harness:
    """Look at the repository that ``path`` is in; nothing is known where there is none, or no commit in it."""
    try:
        repo = open_repository(path)
        commit = repo.ask("rev-parse", "--verify", "HEAD").decode("ascii", "replace").strip()
        return Harness(commit, bool(repo.ask("status", "--porcelain", "-uno").strip()))
    except GitError:
        return Harness(None, None)


def what_differs(then: Header, now: Harness) -> str:
    """Say how the program differs from the one that was recorded; empty if it does not, or that is not known."""
    if then.commit is None or now.commit is None:
        return ""
    if then.commit != now.commit:
        return f"it was recorded at commit {then.commit[:12]}, and this is {now.commit[:12]}"
    return "it was recorded, or is replayed, with changes that are not committed" if then.dirty or now.dirty else ""
