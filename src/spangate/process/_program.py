"""One program from its start to its exit: its span, its exit row, and the table of those that still run."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from spangate import _keys as keys
from spangate._dialects.process import EXECUTABLE, EXIT_CODE, PID
from spangate._hosts import look_after, tell_exit
from spangate._records import Exit
from spangate._sdk.forks import after_fork
from spangate._sdk.takeover import is_suppressed
from spangate.process._cover import is_covered
from spangate.process._environment import child_environment, context_variables
from spangate.process._retries import retried
from spangate.process._tracer import tracer

_ERROR_TYPE: Final = "error.type"
_TIMEOUT: Final = "timeout"
_CANCELLED: Final = "cancelled"


class Program:
    """A program that is being started, runs, or has ended. Any thread may tell what happened to it.

    ``invocation_id`` is new with every start. Nothing here waits: a signal handler may poll the very program that the
    thread it interrupts is dealing with. What two threads could tell at once is told by the one that takes it out of
    the table of running programs, which is one step.
    """

    def __init__(self, span: Span, invocation_id: str) -> None:
        self.invocation_id = invocation_id
        self.pid: int | None = None
        self._span = span
        self._readers: list[None] = []
        self._code: int | None = None
        self._has_expired = False
        self._was_ended = False
        self._output_sha256: str | None = None
        self._output_bytes: int | None = None

    def variables(self) -> dict[str, str]:
        """Return what tells the program which run it is in."""
        return context_variables(self._span, self.invocation_id)

    def environment(self, given: Mapping[Any, Any] | None) -> dict[Any, Any]:
        """Return the environment to start the program with, instead of the one that its caller gave."""
        return child_environment(given, self.variables())

    def runs(self, pid: int | None) -> None:
        """Note that the program was started."""
        self.pid = pid
        if pid is not None:
            self._span.set_attribute(PID, pid)
        running.add(self)
        if self._code is not None:  # it was quicker than whoever started it
            self.exits(self._code)

    def fails_to_start(self, error: BaseException) -> None:
        """End the span of a program that never was: no exit will come."""
        self._span.set_attribute(_ERROR_TYPE, type(error).__qualname__)
        self._span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self._span.end()

    def expires(self) -> None:
        """Note that somebody's patience with it is over; it may be ended for that."""
        self._has_expired = True

    def is_ended(self) -> None:
        """Note that whoever started it sends it a signal."""
        self._was_ended = True

    def __enter__(self) -> Program:
        """Let its exit wait while what it writes is read."""
        self._readers.append(None)
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.pop()
        if self._code is not None:
            self.exits(self._code)

    def writes(self, stdout: Any, stderr: Any) -> None:
        """Note what it wrote, as text or bytes; None where nobody has read it."""
        if stdout is None and stderr is None:
            return
        digest = hashlib.sha256()
        first, second = _bytes(stdout), _bytes(stderr)
        for piece in (first, b"\0", second):
            digest.update(piece)
        self._output_sha256 = digest.hexdigest()
        self._output_bytes = len(first) + len(second)

    def exits(self, code: int) -> None:
        """Note its exit code, -N if signal N killed it. Only the first time counts, and only if it was started."""
        self._code = code
        if not self._readers and running.take_out(self):
            self._tell(code)

    def _tell(self, code: int) -> None:
        was_ended = self._was_ended and code != 0
        timed_out = was_ended and self._has_expired
        if self._span.is_recording():  # told before its span ends: that may be all that the run waits for
            trace_id, span_id = self._span.get_span_context()[:2]
            sha256, size = self._output_sha256, self._output_bytes
            tell_exit(Exit(self.invocation_id, code, timed_out, time.time_ns(), trace_id, span_id, sha256, size))
        self._span.set_attribute(EXIT_CODE, code)
        if code != 0:
            kind = _TIMEOUT if timed_out else _CANCELLED if was_ended else _kind(code)
            self._span.set_attribute(_ERROR_TYPE, kind)
            self._span.set_status(Status(StatusCode.ERROR, f"ended with {_kind(code)}"))
        self._span.end()


class Running:
    """The programs that have been started and not been seen to end."""

    def __init__(self) -> None:
        self._programs: dict[Program, None] = {}
        after_fork(self.forget)

    def forget(self) -> None:
        """Let go of all: a forked child has none of its parent's children."""
        self._programs.clear()

    def add(self, program: Program) -> None:
        """Take in a program that was started."""
        self._programs[program] = None

    def take_out(self, program: Program) -> bool:
        """Let go of one that has ended. False if somebody has done so, or it was never started."""
        return self._programs.pop(program, False) is None

    def look(self) -> None:
        """Note the exit of those that have ended though nobody has waited for them. They are left to be waited for."""
        for program in [*self._programs]:
            code = _peek(program.pid)
            if code is not None:
                program.exits(code)


running: Final = Running()
look_after(running.look)


def begin(executable: str) -> Program | None:
    """Open the span of a program that is about to be started. None if nobody is tracing here."""
    if is_covered() or is_suppressed():
        return None
    invocation_id = os.urandom(16).hex()
    attributes = {keys.INVOCATION_ID: invocation_id, EXECUTABLE: executable, **retried()}
    span = tracer().start_span(executable, kind=SpanKind.CLIENT, attributes=attributes)
    return Program(span, invocation_id) if span.get_span_context().is_valid else None


def _peek(pid: int | None) -> int | None:
    """Return the exit code of a child that has ended, and leave it to be waited for. None: not known."""
    if pid is None or not hasattr(os, "waitid"):
        return None
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:  # somebody has waited for it, and will tell
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _kind(code: int) -> str:
    """Name an exit that is not 0: the signal that killed the program, else the code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return str(code)


def _bytes(written: Any) -> bytes:
    return written.encode("utf-8", "surrogatepass") if isinstance(written, str) else written or b""
