"""What commits have under a name, and what a file on disk would be there: modes and object ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from spangate._git.call import GitError, Repository
from spangate._git.contents import Content, link_text
from spangate._git.status import NONE

Entry: TypeAlias = tuple[bytes, bytes]
"""Mode and object id."""
NOTHING: Final[Entry] = (NONE, b"")
_MODES: Final = {"file": b"100644", "executable": b"100755", "link": b"120000"}
_AT_ONCE: Final = 256
"""So many names are put on one command line."""


def between(repo: Repository, old: str, new: str) -> dict[str, tuple[Entry, Entry]]:
    """Return the names under which two commits have something different, each with both sides.

    Either may be empty, for the time before the first commit.
    """
    if not old:
        return {name: (NOTHING, entry) for name, entry in _tree(repo, new)}
    if not new:
        return {name: (entry, NOTHING) for name, entry in _tree(repo, old)}
    fields = repo.ask("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).split(b"\0")
    found: dict[str, tuple[Entry, Entry]] = {}
    for header, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _state = header.removeprefix(b":").split(b" ")
        found[_decoded(name)] = (_entry(old_mode, old_oid), _entry(new_mode, new_oid))
    return found


def _tree(repo: Repository, commit: str) -> Iterator[tuple[str, Entry]]:
    for line in repo.ask("ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
        facts, _, name = line.partition(b"\t")
        mode, _type, oid = facts.split(b" ")
        yield _decoded(name), (mode, oid)


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _entry(mode: bytes, oid: bytes) -> Entry:
    return NOTHING if mode == NONE else (mode, oid)


def on_disk(repo: Repository, contents: Mapping[str, Content | None]) -> dict[str, Entry]:
    """Return what files on disk would be in a commit, with the conversions of git (line ends, filters) applied.

    ``contents`` are what stands there. What git could not commit, or names as one, is nothing.
    """
    found = dict.fromkeys(contents, NOTHING)
    regular = [name for name, content in contents.items() if content and content.kind in ("file", "executable")]
    for at in range(0, len(regular), _AT_ONCE):
        names = regular[at : at + _AT_ONCE]
        for name, oid in zip(names, _hashed(repo, names), strict=True):
            found[name] = (_MODES[_kind(contents[name])], oid)
    for name, content in contents.items():
        if content and content.kind == "link":
            found[name] = (_MODES["link"], _link_id(repo, name))
    return found


def _hashed(repo: Repository, names: Iterable[str]) -> Sequence[bytes]:
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    return repo.ask("hash-object", "--", *raw).split(b"\n")[:-1]


def _link_id(repo: Repository, name: str) -> bytes:
    """Return the id of a link's target as an object; git itself would follow the link."""
    try:
        target = link_text(repo.path_of(name))
    except OSError as error:
        raise GitError(f"{name!r} cannot be read: {error.strerror or error}") from None
    kind = repo.ask("rev-parse", "--show-object-format").strip().decode("ascii")
    return hashlib.new(kind, b"blob %d\0%s" % (len(target), target)).hexdigest().encode("ascii")


def _kind(content: Content | None) -> str:
    return "file" if content is None else content.kind
