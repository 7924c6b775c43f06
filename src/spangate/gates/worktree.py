"""Worktree: every path that changed during a run is owned by a closed span, and holds what the last of them left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from spangate._globs import matcher
from spangate._journal import Claim, Journal, journal
from spangate._records import ABSENT, Changes, Delta, Finding, Span, not_evaluable
from spangate._run import Run

_NOT_EVALUABLE = "worktree.not_evaluable"
_NOBODY_LOOKED = "nobody has looked at the working tree, as is so for a recording"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """Finds changes of a git working tree that no span tells of, and spans that tell of what is not on disk.

    Spans tell by attributes, which those of :mod:`spangate.files` have: ``op`` (``write``, ``create``, ``append``,
    ``edit``, ``delete``, ``move``), ``path`` and ``after_hash``, or ``outputs``.

    Attributes:
        repo: A directory of the working tree.
        writers: Names of tools that write a file, each with the argument that names it, nested by dots. The path is
            relative to the top of the tree, or absolute.
        ignored: Whether files that git ignores count, too.
        allow: Patterns, as in a ``.gitignore``, of paths that nobody need tell of.
        require_mutation: Whether a run has to change something.

    Raises:
        ValueError: no repository, or a writer without an argument.
    """

    repo: str | PurePath = field(metadata={"is_place": True})
    writers: Mapping[str, str] = field(default_factory=dict, hash=False)
    ignored: bool = False
    allow: tuple[str, ...] = ()
    require_mutation: bool = False

    def __post_init__(self) -> None:
        if not str(self.repo):
            raise ValueError("repo is empty: name a directory of the working tree")
        for tool, argument in self.writers.items():
            if not argument:
                raise ValueError(f"writers[{tool!r}] is {argument!r}: name the argument that holds the path")

    @property
    def tools_named(self) -> Iterable[str]:
        """The names of tools in the settings."""
        return self.writers

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield what is wrong about claims, in the order of their spans' starts, then ghosts by path."""
        changes = run.changes
        if changes is None or changes.unknown:
            yield not_evaluable(_NOT_EVALUABLE, _NOBODY_LOOKED if changes is None else changes.unknown)
            return
        ledger = _Ledger(changes, journal(run, self.writers))
        yield from ledger.lies()
        unowned = ledger.unowned()
        yield from self._ghosts(unowned, ledger, changes)
        is_certain = not (unowned and ledger.mute)
        if self.require_mutation and is_certain and len(unowned) == len(changes.deltas):
            yield Finding("worktree.no_mutation", run.root, "no closed span has changed anything")

    def _ghosts(self, unowned: Mapping[str, Delta], ledger: _Ledger, changes: Changes) -> Iterator[Finding]:
        is_allowed = matcher(self.allow, ignores_case=changes.ignores_case)
        ghosts = {path: delta for path, delta in unowned.items() if not is_allowed(path)}
        mute: dict[str, Span] = {}
        for span in ledger.mute:
            mute.setdefault(span.name, span)
        for span in mute.values():
            yield not_evaluable(_NOT_EVALUABLE, "its span does not say which file it was to write", span)
        if ghosts and changes.since_earlier:
            yield not_evaluable(_NOT_EVALUABLE, changes.since_earlier)
        elif not mute:
            for path, delta in sorted(ghosts.items()):
                yield Finding("worktree.ghost", None, f"{_readable(path)} {_fate(delta)}, and no closed span says so")


class _Ledger:
    """The changes of a tree, and the claims to them, by path; on some file systems ``README`` is ``readme``."""

    def __init__(self, changes: Changes, told: Journal) -> None:
        self._fold: Callable[[str], str] = str.casefold if changes.ignores_case else str
        self._changes = changes
        self._deltas = {self._fold(path): delta for path, delta in changes.deltas.items()}
        self._on_disk = {self._fold(path): content for path, content in changes.on_disk.items()}
        self._claims: dict[str, list[Claim]] = {}
        for claim in told.claims:
            self._claims.setdefault(self._fold(claim.path), []).append(claim)
        self._outputs = told.outputs
        self.mute = told.mute

    def unowned(self) -> dict[str, Delta]:
        """Return the changes that nobody owns."""
        patterns = [pattern for _, patterns in self._outputs for pattern in patterns]
        is_output = matcher(patterns, ignores_case=self._changes.ignores_case)
        wholes = [path for path, delta in self._changes.deltas.items() if delta.is_whole]
        inside = self._inside(wholes)
        return {
            path: delta
            for path, delta in self._changes.deltas.items()
            if self._fold(path) not in self._claims and path not in inside and not is_output(path)
        }

    def _inside(self, wholes: Sequence[str]) -> set[str]:
        """Return the directories that git names as one in which a claim lies."""
        prefixes = {f"{self._fold(path)}/": path for path in wholes}
        return {
            path for prefix, path in prefixes.items() if any(claimed.startswith(prefix) for claimed in self._claims)
        }

    def lies(self) -> Iterator[Finding]:
        """Yield the claims to paths that hold something else than the last span left there.

        Of spans that overlapped any may have been the last.
        """
        for path, claims in self._claims.items():
            latest = max(claim.span.start_ns for claim in claims)
            last = [claim for claim in claims if (claim.span.end_ns or 0) >= latest]
            if path not in self._on_disk or any(claim.after in (ABSENT, self._on_disk[path]) for claim in last):
                continue
            if not self._is_overwritten(path, latest):
                yield self._lie(path, last[-1])

    def _is_overwritten(self, path: str, latest: int) -> bool:
        """Say whether a tool that declares only patterns may have written there since."""
        patterns = [pattern for span, declared in self._outputs if (span.end_ns or 0) >= latest for pattern in declared]
        return matcher(patterns, ignores_case=self._changes.ignores_case)(path)

    def _lie(self, path: str, claim: Claim) -> Finding:
        there = self._on_disk[path]
        found = "nothing is there" if there is None else f"what is there is {there[:12]}"
        left = "nothing" if not claim.after else claim.after[:12]
        if path in self._deltas:
            return Finding("worktree.hash_mismatch", claim.span, f"left {left} at {_readable(claim.path)}, but {found}")
        what = f"says it left {left} at {_readable(claim.path)}, but {found}, as before"
        return Finding("worktree.phantom", claim.span, what)


def _readable(path: str) -> str:
    """Return a path for a line of text; a name may hold anything, line ends too."""
    return path if path.isprintable() else repr(path)


def _fate(delta: Delta) -> str:
    if delta.before is None:
        return "has appeared"
    if delta.after is None:
        return "is gone"
    return "has another mode" if delta.before == delta.after else "has changed"
