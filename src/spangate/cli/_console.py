"""What every command shares at the terminal: colours, progress, and errors that end in an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import click

from spangate._verdict.text import Part, Style, plain

PASSED, FAILED, UNREADABLE, NO_RUN = range(4)
"""The exit codes: all runs pass, a run fails, input or usage is wrong, there is no run in the input."""

_COLOURS: Final[dict[Part, dict[str, str | bool]]] = {
    "pass": {"fg": "green", "bold": True},
    "fail": {"fg": "red", "bold": True},
    "warn": {"fg": "yellow"},
    "gap": {"fg": "cyan"},
    "dim": {"dim": True},
}
_LONG_BYTES: Final = 32 << 20


def style_of(stream: TextIO) -> Style:
    """Return the style for a stream: colours on a terminal, unless ``NO_COLOR`` is set or the terminal is dumb."""
    wanted = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return _coloured if wanted else plain


def _coloured(text: str, part: Part) -> str:
    return click.style(text, **_COLOURS[part])  # type: ignore[arg-type] # the table holds what click takes


def say(text: str) -> None:
    """Write to standard error: what is told beside the result."""
    click.echo(text, err=True)


@contextmanager
def quiet_log() -> Iterator[None]:
    """Keep the gate's log line about a refused run from the terminal: the verdict is shown there anyway."""
    logger, handler = logging.getLogger("spangate"), logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class Progress:
    """Shows how much of a long input has been read, on standard error, and only if that is a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_shown = False

    def hook(self) -> Callable[[int, int], None] | None:
        """Return what :func:`spangate.archive.read` is to call."""
        return self._show if sys.stderr.isatty() else None

    def _show(self, done: int, total: int) -> None:
        if total >= _LONG_BYTES:
            self._is_shown = True
            click.echo(f"\r{self._name}: {100 * done // total} %", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_shown = False
