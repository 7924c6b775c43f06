"""The answer of ``git status --porcelain=v2 -z``, read: one row for each name that is not as in the last commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spangate._git.call import GitError

NONE: Final = b"000000"
"""The mode of what is not there."""
GITLINK: Final = b"160000"
"""The mode of a submodule."""
_HEAD: Final = b"# branch.oid "
_UNBORN: Final = b"(initial)"


@dataclass(frozen=True, slots=True)
class Row:
    """One name, with what the last commit has there: a mode and an object id, ``NONE`` and nothing if it has nothing.

    ``index`` is mode and object id of what is staged, where the file on disk is as staged; None where it is not, or
    nothing is staged. ``is_staged`` says that what is staged is not what the last commit has.
    """

    name: bytes
    mode: bytes = NONE
    oid: bytes = b""
    index: tuple[bytes, bytes] | None = None
    is_staged: bool = False
    is_tracked: bool = True


def read_status(answer: bytes) -> tuple[str, list[Row]]:
    """Return the commit that HEAD is at, empty before the first one, and the rows.

    A rename, should git tell of one, is two names.

    Raises:
        GitError: what git wrote is not what it promises.
    """
    head = ""
    rows: list[Row] = []
    fields = iter(answer.split(b"\0"))
    try:
        for line in fields:
            if line.startswith(_HEAD):
                oid = line.removeprefix(_HEAD)
                head = "" if oid == _UNBORN else oid.decode("ascii")
            else:
                rows.extend(_rows(line, fields))
    except (ValueError, StopIteration) as error:
        raise GitError(f"git status wrote something unknown: {line!r}") from error
    return head, rows


def _rows(line: bytes, following: Iterator[bytes]) -> Iterator[Row]:
    match line[:2]:
        case b"1 ":
            _, states, _sub, head_mode, index_mode, _mode, head_oid, index_oid, name = line.split(b" ", 8)
            yield _changed(name, states, (head_mode, head_oid), (index_mode, index_oid))
        case b"2 ":
            _, _, _sub, head_mode, _index_mode, _mode, head_oid, _index_oid, _score, name = line.split(b" ", 9)
            yield Row(name, is_staged=True)
            yield Row(next(following), head_mode, head_oid, is_staged=True)
        case b"u ":
            parts = line.split(b" ", 10)  # of the three sides of a conflict the second is ours
            yield Row(parts[10], parts[4], parts[8] if parts[4] != NONE else b"", is_staged=True)
        case b"? " | b"! ":
            yield Row(line[2:], is_tracked=False)


def _changed(name: bytes, states: bytes, head: tuple[bytes, bytes], index: tuple[bytes, bytes]) -> Row:
    mode, oid = head
    is_as_staged = states[1:] == b"." and index[0] != NONE
    return Row(
        name,
        mode,
        b"" if mode == NONE else oid,
        index if is_as_staged else None,
        is_staged=states[:1] != b".",
    )
