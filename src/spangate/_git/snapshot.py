"""A working tree at one moment, as far as it differs from the last commit, and what has changed between two moments."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from spangate._git.call import GitError, Repository, open_repository
from spangate._git.contents import Content, Identity, content_of, identity_of
from spangate._git.names import shown
from spangate._git.objects import Entry, between, on_disk
from spangate._git.status import GITLINK, NONE, Row, read_status
from spangate._records import Delta

_STATUS: Final = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all"),
    *("--no-renames", "--ignore-submodules=none"),
)
_WITH_IGNORED: Final = "--ignored=traditional"
_SETTLED_NS: Final = 2_000_000_000
"""A file that was last touched so long before a moment has certainly not been touched since it."""
Names: TypeAlias = Mapping[str, Content | None]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What differed from the commit ``head`` (empty before the first one) when somebody looked.

    ``differing`` maps names to what stood there, None if nothing did. Names are relative to the top, with slashes, and
    have surrogates for bytes that are not UTF-8. ``bases`` says what the commit has under these names, of those that it
    has, ``identities`` how a file is told from what it was. ``taken_ns`` is when the look began, nanoseconds since the
    epoch.
    """

    head: str
    differing: Names
    bases: Mapping[str, Entry]
    taken_ns: int
    identities: Mapping[str, Identity | None]


def take(repo: Repository, *, with_ignored: bool = False, since: Snapshot | None = None) -> Snapshot:
    """Look at the working tree: one ``git status``, and a hash of each file that it names.

    What has not been touched since an earlier look is not hashed again.

    Raises:
        GitError: git does not answer, or a file cannot be read.
    """
    taken_ns = time.time_ns()
    head, rows = read_status(repo.ask(*_STATUS, *((_WITH_IGNORED,) if with_ignored else ())))
    bases = {_name(row.name): (row.mode, row.oid) for row in rows if row.oid}
    identities = {name: identity_of(repo.path_of(name)) for name in (_name(row.name) for row in rows)}
    found = {_name(row.name): _content(repo, row) for row in rows if not _is_known(row, identities, since)}
    if since is not None:
        found = {name: found[name] if name in found else since.differing[name] for name in identities}
    unsure = [_name(row.name) for row in rows if row.is_staged and row.oid and row.index is None]
    there = on_disk(repo, {name: found[name] for name in unsure})
    back = {_name(row.name) for row in rows if row.index is not None and row.index == (row.mode, row.oid)}
    back |= {name for name in unsure if _is_same(repo, there[name], bases[name])}
    differing = {name: content for name, content in found.items() if name not in back}
    return Snapshot(head, differing, bases, taken_ns, identities)


def _is_known(row: Row, identities: Mapping[str, Identity | None], since: Snapshot | None) -> bool:
    """Say whether a file is as it was at an earlier look, which it was left alone for a while before."""
    name = _name(row.name)
    identity = identities[name]
    if since is None or identity is None or since.differing.get(name) is None or _is_whole(row):
        return False
    return since.identities.get(name) == identity and identity[0] < since.taken_ns - _SETTLED_NS


def _name(raw: bytes) -> str:
    return raw.rstrip(b"/").decode("utf-8", "surrogateescape")


def _content(repo: Repository, row: Row) -> Content | None:
    return content_at(repo, _name(row.name), is_whole=_is_whole(row))


def _is_whole(row: Row) -> bool:
    return row.name.endswith(b"/") or GITLINK in (row.mode, row.index[0] if row.index else b"")


def content_at(repo: Repository, name: str, *, is_whole: bool = False) -> Content | None:
    """Return what stands under a name now. Raises :class:`GitError` if it cannot be read."""
    path = repo.path_of(name)
    try:
        found = content_of(path, has_modes=repo.has_modes)
    except OSError as error:
        raise GitError(f"{shown(name)} cannot be read: {error.strerror or error}") from None
    return _whole(path) if found is None and is_whole and path.is_dir() else found


def _whole(path: Path) -> Content | None:
    """Return what a directory is that git names as one. One that is no repository (any more) is empty to it."""
    if not (path / ".git").exists():
        return None
    inner = open_repository(path)
    seen = take(inner)
    return Content("whole", digest_of(seen.head.encode(), seen.differing))


def digest_of(start: bytes, differing: Names) -> str:
    """Hash what differs from something that ``start`` stands for: 64 hex digits."""
    digest = hashlib.sha256(start)
    for name, content in sorted(differing.items()):
        kind, sha256 = ("gone", "") if content is None else (content.kind, content.sha256)
        digest.update(b"\0".join((b"", name.encode("utf-8", "surrogateescape"), kind.encode(), sha256.encode())))
    return digest.hexdigest()


def changes(repo: Repository, before: Snapshot, after: Snapshot) -> dict[str, Delta]:
    """Return what is not as it was, by name. Neither commits nor what is staged are changes; content and modes are.

    A name that differed in neither snapshot, under two commits that have the same there, is not looked at.

    Raises:
        GitError: git does not answer, or a file cannot be read.
    """
    deltas = dict(_known_then(repo, before, after))
    moved = {} if before.head == after.head else between(repo, before.head, after.head)
    fresh = [name for name in {**moved, **after.differing} if name not in before.differing]
    bases = {name: moved[name][0] if name in moved else after.bases.get(name, (NONE, b"")) for name in fresh}
    there = {} if not moved else on_disk(repo, {name: after.differing.get(name) for name in fresh})
    for name in fresh:
        if name in there and name in after.differing and _is_same(repo, there[name], bases[name]):
            continue
        now = after.differing[name] if name in after.differing else content_at(repo, name, is_whole=_links(moved[name]))
        mode, oid = bases[name]
        was = None if mode == NONE else f"git:{oid.decode('ascii')}"
        if was is not None or now is not None:
            deltas[name] = Delta(was, _hash(now), is_whole=mode == GITLINK or (now is not None and now.kind == "whole"))
    return dict(_seen_for_the_first_time(repo, before, deltas))


def _known_then(repo: Repository, before: Snapshot, after: Snapshot) -> Iterator[tuple[str, Delta]]:
    for name, was in before.differing.items():
        is_whole = was is not None and was.kind == "whole"
        now = after.differing[name] if name in after.differing else content_at(repo, name, is_whole=is_whole)
        if was != now:
            yield name, Delta(_hash(was), _hash(now), is_whole=is_whole or (now is not None and now.kind == "whole"))


def _seen_for_the_first_time(
    repo: Repository, before: Snapshot, deltas: Mapping[str, Delta]
) -> Iterable[tuple[str, Delta]]:
    """Leave out what only came to light: files that were ignored until somebody changed what is ignored."""
    if not any(name.rpartition("/")[2] == ".gitignore" for name in deltas):
        return deltas.items()
    return [(name, delta) for name, delta in deltas.items() if delta.before or not _is_older(repo, name, before)]


def _is_older(repo: Repository, name: str, before: Snapshot) -> bool:
    try:
        return repo.path_of(name).lstat().st_ctime_ns < before.taken_ns - _SETTLED_NS
    except OSError:
        return False


def _links(sides: tuple[Entry, Entry]) -> bool:
    return any(mode == GITLINK for mode, _ in sides)


def _hash(content: Content | None) -> str | None:
    return None if content is None else content.sha256


def _is_same(repo: Repository, there: Entry, base: Entry) -> bool:
    """Say whether a file on disk is what a commit has."""
    if there[1] != base[1]:
        return False
    return there[0] == base[0] if repo.has_modes else there[0][:2] == base[0][:2]
