"""What the tools of a policy's table have written: hashed when their spans end, before anybody else can write there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from spangate._adapter import record
from spangate._dialects import classify, tool_name
from spangate._git import Repository, content_at, name_of
from spangate._git.contents import identity_of
from spangate._journal import named_paths
from spangate._paths import PathError, name_in, place_in
from spangate._records import ABSENT, Absent
from spangate._run import Run
from spangate._telemetry import logger
from spangate._worktree import Looker

_SMALL: Final = 1 << 20
"""Bytes that are hashed while the thread that ended the span waits: a millisecond or so."""
_MAX_KNOWN: Final = 1 << 16
"""Of so many tools it is remembered what they wrote; the first is forgotten first."""
_MAX_PATHS: Final = 64
"""So many files of one tool are hashed."""

Written: TypeAlias = list[tuple[str, str | Absent | None]]


class Writers:
    """Knows, by trace id and span id, what tools left on disk. ``tools`` maps their names to arguments."""

    def __init__(self, tools: Mapping[str, str], looker: Looker) -> None:
        self.tools = tools
        self._looker = looker
        self.reset()

    def reset(self) -> None:
        """Know nothing: what a forked child starts with."""
        self._known: dict[tuple[int, int], Written] = {}
        self._has_failed = False

    def ended(self, span: Any) -> None:
        """Hash what a tool has written, if the span is one of these. Nothing is raised."""
        try:
            self._note(span)
        except Exception:  # noqa: BLE001  it would reach the host program
            if not self._has_failed:
                self._has_failed = True
                logger.exception("what a tool wrote could not be hashed; its span alone tells")

    def take(self, run: Run) -> Mapping[tuple[int, int], Sequence[tuple[str, str | Absent | None]]]:
        """Take out what is known of a run's tools."""
        keys = [(span.trace_id, span.span_id) for span in run.of_role("tool")] if self._known else ()
        found = ((key, self._known.pop(key, None)) for key in keys)
        return {key: written for key, written in found if written is not None}

    def _note(self, span: Any) -> None:
        ended = record(span, is_open=False)
        classify(ended)
        argument = self.tools.get(tool_name(ended)) if ended.role == "tool" else None
        repository = self._looker.repository
        if argument is None or repository is None:
            return
        written: Written = []
        top = Path(repository.root)
        paths = named_paths(ended, argument)
        for path in paths[:_MAX_PATHS]:
            try:
                name = name_in(top, place_in(top, path))
            except (PathError, OSError):  # whatever it wrote, it was no file of this repository
                continue
            written.append((name, ABSENT))
            self._hash(repository, name, written)
        if paths:
            while len(self._known) >= _MAX_KNOWN:
                self._known.pop(next(iter(self._known)), None)
            self._known[ended.trace_id, ended.span_id] = written

    def _hash(self, repository: Repository, name: str, written: Written) -> None:
        """Write down the hash of a file, of a large one when there is time, if it is still the same then."""
        at = len(written) - 1
        place = repository.path_of(name_of(name))
        identity = identity_of(place)

        def look() -> None:
            content = content_at(repository, name_of(name))
            if identity_of(place) == identity:
                written[at] = (name, None if content is None else content.sha256)

        if identity is None or identity[2] <= _SMALL:
            look()
        else:
            self._looker.do(look)
