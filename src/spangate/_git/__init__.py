"""What git knows of a working tree: what differs from the last commit, and a hash of all that is there.

Nothing here writes to a repository or takes a lock of it. What git ignores is not there unless somebody asks for it,
and what it was told to overlook (``update-index --assume-unchanged``) is overlooked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

from spangate._git.call import GitError, Repository, open_repository
from spangate._git.contents import Content
from spangate._git.names import name_of, shown
from spangate._git.snapshot import Snapshot, changes, content_at, digest_of, take
from spangate._records import Delta

__all__ = [
    "Content",
    "DiffStat",
    "GitError",
    "Repository",
    "Snapshot",
    "changes",
    "content_at",
    "diff_stat",
    "name_of",
    "open_repository",
    "shown",
    "take",
    "tree_hash",
]


@dataclass(frozen=True, slots=True)
class DiffStat:
    """How many files appeared, changed and went between two looks at a working tree."""

    appeared: int
    changed: int
    gone: int

    def __str__(self) -> str:
        """Read as ``+1 ~2 -0``."""
        return f"+{self.appeared} ~{self.changed} -{self.gone}"


def tree_hash(repo: str | PathLike[str] | Repository) -> str:
    """Return a hash of what is in the working tree now: 64 hex digits, equal whenever HEAD's tree and all else are.

    Neither times of files nor what is staged count. A commit of what is there changes the hash, though no file.

    Args:
        repo: A directory in the working tree, or the repository itself.

    Raises:
        GitError: no repository, none with a working tree, or git does not answer; the message is the reason.
    """
    opened = repo if isinstance(repo, Repository) else open_repository(repo)
    seen = take(opened)
    tree = opened.ask("rev-parse", "--verify", f"{seen.head}^{{tree}}").strip() if seen.head else b""
    return digest_of(tree, seen.differing)


def diff_stat(deltas: Mapping[str, Delta]) -> DiffStat:
    """Count what :func:`changes` has found between two snapshots."""
    appeared = sum(1 for delta in deltas.values() if delta.before is None)
    gone = sum(1 for delta in deltas.values() if delta.after is None)
    return DiffStat(appeared, len(deltas) - appeared - gone, gone)
