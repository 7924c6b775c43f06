"""Patterns for paths, read as in a ``.gitignore``: which of them a path matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_PIECES: Final = re.compile(r"\*\*/|/\*\*$|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_WILD: Final = {"**/": "(?:[^/]+/)*", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}


def matcher(patterns: Iterable[str], *, ignores_case: bool = False) -> Callable[[str], bool]:
    """Return the question whether a path matches any of ``patterns``.

    A pattern without a slash matches a name in every directory, one with a slash a path from the top. ``*`` and ``?``
    stop at slashes, ``**`` does not. A pattern matches all that is below a directory that it matches.
    """
    together = "|".join(map(_translated, patterns))
    if not together:
        return lambda _path: False
    matches = re.compile(f"(?:{together})(?:/.*)?", re.DOTALL | (re.IGNORECASE if ignores_case else 0)).fullmatch
    return lambda path: matches(path) is not None


def _translated(pattern: str) -> str:
    inner = pattern.rstrip("/")
    anywhere = "" if "/" in inner else "(?:.*/)?"
    return anywhere + "".join(_WILD.get(piece) or _plain(piece) for piece in _PIECES.findall(inner.lstrip("/")))


def _plain(piece: str) -> str:
    if len(piece) == 1:
        return re.escape(piece)
    inside = re.sub(r"([\\\[&~|])", r"\\\1", piece[1:-1])
    return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
