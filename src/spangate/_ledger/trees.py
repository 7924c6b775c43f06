"""The working tree that calls work on: what its hash is, and what a call has changed in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from spangate._git import GitError, Repository, Snapshot, changes, diff_stat, open_repository, take, tree_hash
from spangate._ledger.errors import LedgerError


class Seen(NamedTuple):
    """A working tree at one moment."""

    tree_hash: str
    snapshot: Snapshot


class Tree:
    """The working tree of the repository that ``path`` is in, as the ledger at ``ledger`` looks at it."""

    def __init__(self, path: str, ledger: str) -> None:
        self.path = path
        self._ledger = ledger
        self._opened: Repository | None = None

    def hash(self) -> str:
        """Return the hash of what is there now. Raises :class:`SpangateError`."""
        return tree_hash(self._repository())

    def look(self) -> Seen:
        """Look at what is there now, for :meth:`since`. Raises :class:`SpangateError`."""
        return Seen(self.hash(), take(self._repository()))

    def since(self, before: Seen) -> tuple[str, str]:
        """Return the hash of what is there now, and how many files are not as they were. Raises as :meth:`look`."""
        repository, now = self._repository(), self.hash()
        if now == before.tree_hash:
            return now, "+0 ~0 -0"
        return now, str(diff_stat(changes(repository, before.snapshot, take(repository))))

    def _repository(self) -> Repository:
        if self._opened is None:
            opened = open_repository(self.path)
            self._keep_out(opened)
            self._opened = opened
        return self._opened

    def _keep_out(self, opened: Repository) -> None:
        """Refuse a ledger that is itself a part of the tree: each call would change what it is to be compared by."""
        top, file = Path(os.path.realpath(opened.root)), Path(os.path.realpath(self._ledger))
        if top not in file.parents or ".git" in file.relative_to(top).parts:
            return
        try:
            opened.ask("check-ignore", "--quiet", str(file))
        except GitError:
            what = f"lies in the working tree of {top}, so that every call would change the tree"
            raise LedgerError(what, path=self._ledger, fix="have git ignore it, or keep it elsewhere") from None
