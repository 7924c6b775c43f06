"""The watch on programs that are started round everything: named with their call site, if somebody asked for it.

It hears what Python's audit hooks tell. Code in C that starts programs tells nothing.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import PurePath
from types import FrameType
from typing import Any, Final

from opentelemetry import trace

from spangate._hosts import tell_note
from spangate._records import Finding
from spangate.process._cover import is_covered

_STARTS: Final = frozenset(
    {"os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn", "subprocess.Popen"}
)
_STANDARD: Final = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep


class _Watch:
    """An audit hook cannot be taken away again, so there is one, which can be told to keep still."""

    def __init__(self) -> None:
        self._is_on = False
        self._is_hooked = False

    def watch(self) -> None:
        """Name programs that are started by other ways than those that :mod:`spangate.process` traces.

        Each is ``exits.unwatched_spawn`` in the run whose span is current. The hook stays for the life of the process.
        """
        self._is_on = True
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(self._hear)

    def unwatch(self) -> None:
        """Name them no longer."""
        self._is_on = False

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in _STARTS or not self._is_on or is_covered():
            return
        try:
            own = trace.get_current_span().get_span_context()
            if own.is_valid:
                what = f"{event} of {_program(args)} at {_call_site(sys._getframe(1))}"  # noqa: SLF001  as tracebacks do
                tell_note(own.trace_id, own.span_id, Finding("exits.unwatched_spawn", None, what))
        except Exception:  # noqa: BLE001  it would keep the program from being started
            return


def _program(args: tuple[Any, ...]) -> str:
    """Name what is started: the program file alone, for arguments hold secrets."""
    first = args[0] if args else None
    first = first[0] if isinstance(first, list | tuple) and first else first
    if isinstance(first, bytes | os.PathLike):
        first = os.fsdecode(first)
    words = first.split(maxsplit=1) if isinstance(first, str) else ()
    return PurePath(words[0]).name if words else "a program"


def _call_site(frame: FrameType | None) -> str:
    """Return file and line of the nearest caller outside the standard library."""
    while frame is not None and os.path.realpath(frame.f_code.co_filename).startswith(_STANDARD):
        if "site-packages" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    return "an unknown place" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


_watch: Final = _Watch()
watch: Final = _watch.watch
unwatch: Final = _watch.unwatch
