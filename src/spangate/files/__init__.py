"""Files that a run writes, deletes and moves, each with a span that tells it: what the ``worktree`` gate holds it to.

Paths are relative to the top of the git working tree, and never lead out of it. A span has ``op``, ``path``
(``target_path`` of a move) with slashes, ``before_hash`` and ``after_hash``: SHA-256 in hex of what was and what is
there, left out where there is nothing. A name that is not UTF-8 is told as git quotes it. Without a tracer provider
the files are written all the same.
"""

from __future__ import annotations

from spangate._paths import PathError
from spangate.files._effects import delete, move, write
from spangate.files._span import tool, use_provider

__all__ = ["PathError", "delete", "move", "tool", "use_provider", "write"]
