"""How many files a tool has changed, as the spans inside of it declare: nobody has looked at the tree meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from spangate._attempts import OPERATION, PATH
from spangate._git import DiffStat
from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run

_Hashes: TypeAlias = tuple[Any, Any]
_BEFORE: Final = "before_hash"
_AFTER: Final = "after_hash"
_UNKNOWN: Final[_Hashes] = ("before", "after")
_TARGET: Final = "target_path"
_DELETE: Final = "delete"
_MAX_DEPTH: Final = 8
"""So many tools inside of each other are told of a file; deeper nesting says nothing more."""


def changes_of(run: Run) -> dict[Span, str]:
    """Return for each tool in which spans declare files what became of these, as ``+1 ~2 -0``.

    Of several writes to one file the first before and the last after count.
    """
    tool_above = nearest(run, lambda span: span.role == "tool")
    files: dict[Span, dict[str, _Hashes]] = {}
    for span in run.spans:
        path = span.attributes.get(PATH)
        if isinstance(path, str):
            tool = span if span.role == "tool" else tool_above(span)
            for _ in range(_MAX_DEPTH):
                if tool is None:
                    break
                for name, hashes in _told(span, path):
                    _note(files.setdefault(tool, {}), name, hashes)
                tool = tool_above(tool)
    return {tool: str(_stat(found)) for tool, found in files.items()}


def _note(files: dict[str, _Hashes], path: str, hashes: _Hashes) -> None:
    known = files.get(path)
    files[path] = hashes if known is None else (known[0], hashes[1])


def _told(span: Span, path: str) -> Iterator[tuple[str, _Hashes]]:
    """Yield what a span says of files before and after, None for no file. A move is of two."""
    attributes = span.attributes
    operation, target = attributes.get(OPERATION), attributes.get(_TARGET)
    before, after = attributes.get(_BEFORE) or None, attributes.get(_AFTER) or None
    if isinstance(target, str):
        yield path, (before or _UNKNOWN[0], None)
        yield target, (None, after or _UNKNOWN[1])
    elif _BEFORE in attributes or _AFTER in attributes:
        yield path, (before, after)
    else:
        yield path, ((_UNKNOWN[0], None) if operation == _DELETE else _UNKNOWN)


def _stat(files: dict[str, _Hashes]) -> DiffStat:
    pairs = [pair for pair in files.values() if pair[0] != pair[1]]
    appeared = sum(1 for before, _ in pairs if before is None)
    gone = sum(1 for _, after in pairs if after is None)
    return DiffStat(appeared, len(pairs) - appeared - gone, gone)
