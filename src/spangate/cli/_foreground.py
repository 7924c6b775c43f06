"""A command run in the foreground as if nobody stood between: its streams, its signals, its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from spangate import process

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""What shells say of a command that cannot be run."""
_SIGNAL_BASE: Final = 128
"""What shells add to the number of the signal that ended a command."""
_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL: Final = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to a command by itself."""


class CannotRunError(Exception):
    """There is no such command, or it may not be run. ``code`` is the exit code that says so."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)
        self.code = code


def run_in_foreground(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code, as a shell would say it.

    Standard streams are the command's. Signals that come meanwhile are passed on to it, and end nothing here: whoever
    sends them wants the command to end, and what it did is still to be judged.

    Raises:
        CannotRunError: the command could not be started.
    """
    with _passing_on_signals() as started:
        try:
            program = process.Popen(command, env=environment)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            raise CannotRunError(f"spangate run: {command[0]}: {error.strerror}", code) from None
        started(program)
        ended: int = program.wait()
    return ended if ended >= 0 else _SIGNAL_BASE - ended


class _Relay:
    """Passes signals on to a program, those that came before it was there as soon as it is."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def __call__(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program
        for number in self._early:
            self._pass_on(number)

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on, unless the terminal has sent it to the program as well."""
        if self._program is None:
            self._early.append(number)
        elif self._program.returncode is None and not _is_from_terminal(number):
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if self._program is not None:
            with suppress(OSError):  # it has just ended, or is somebody else's now
                os.kill(self._program.pid, number)


@contextmanager
def _passing_on_signals() -> Iterator[_Relay]:
    relay = _Relay()
    numbers = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:  # nohup wants it ignored, by the command too
            signal.signal(number, relay.handle)
    try:
        yield relay
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_from_terminal(number: int) -> bool:
    """Say whether a signal came by a key at the terminal: the command, in the same foreground, has it already."""
    if signal.Signals(number).name not in _FROM_TERMINAL or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
