"""``multiprocessing`` with a span for each process, and its context in the child.

A process is a program whose file is the interpreter. Its exit is noted when ``multiprocessing`` learns of it, which is
when ``returncode`` is set. Workers of pools and servers of managers outlive the run that happens to start them: they
have no span, and are told of that run in their environment only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from multiprocessing import popen_fork
from multiprocessing.process import BaseProcess
from typing import Any, Final

from opentelemetry import trace

from spangate._arrival import Arrival
from spangate._hosts import hand_on
from spangate._sdk.takeover import is_suppressed
from spangate._telemetry import logger
from spangate.process._environment import STALE, context_variables
from spangate.process._popen import PROGRAM, RETURNCODE, Method, file_name, signalling, tell
from spangate.process._program import Program, begin

if sys.platform == "win32":
    from multiprocessing.popen_spawn_win32 import Popen
else:
    Popen = popen_fork.Popen  # those that spawn, or ask a server to fork, are subclasses

_ARRIVAL: Final = "_spangate_arrival"
_LASTING: Final = frozenset(
    {
        "concurrent.futures.process._process_worker",
        "multiprocessing.managers.BaseManager._run_server",
        "multiprocessing.pool.worker",
    }
)
"""What runs in processes that belong to no run."""


def starting(original: Method) -> Method:
    """Put the start of a span around ``Popen.__init__``, which starts the child, and have the child told of it."""

    @functools.wraps(original)
    def __init__(self: Any, process_obj: Any) -> None:  # noqa: N807  whose place it takes
        program, arrival = _begun(process_obj)
        if program is not None:
            vars(self)[PROGRAM] = program
        if arrival is not None:
            vars(process_obj)[_ARRIVAL] = arrival
        try:
            original(self, process_obj)
        except BaseException as error:
            if program is not None:
                program.fails_to_start(error)
            raise
        finally:
            vars(process_obj).pop(_ARRIVAL, None)
        if program is not None:
            program.runs(self.pid)

    return __init__


def waiting(original: Method) -> Method:
    """Put around ``Popen.wait``, which ``join`` calls, that a process may have taken too long."""

    @functools.wraps(original)
    def wait(self: Any, timeout: float | None = None) -> Any:
        code = original(self, timeout)
        if code is None and timeout:
            tell(self, Program.expires)
        return code

    return wait


def arriving(original: Method) -> Method:
    """Put before ``BaseProcess._bootstrap``, with which a forked child begins, that it takes its place in the run."""

    @functools.wraps(original)
    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        arrival = vars(self).pop(_ARRIVAL, None)
        if arrival is not None:
            try:
                arrival.arrives()
            except Exception:  # noqa: BLE001  the child must do its work
                logger.exception("a process runs without the context of its run")
        try:
            return original(self, *args, **kwargs)
        finally:
            hand_on()  # such a child leaves without saying so

    return _bootstrap


def wanted() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield owner and name of all that is replaced, and what makes the new one of the old."""
    yield Popen, "__init__", starting
    yield Popen, "wait", waiting
    yield Popen, "returncode", lambda _: RETURNCODE
    for name in {"terminate", "kill", "interrupt"} & vars(Popen).keys():
        yield Popen, name, signalling
    yield BaseProcess, "_bootstrap", arriving


def _begun(process: Any) -> tuple[Program | None, Arrival | None]:
    """Open the span of a process, and say what its child is told. Whatever goes wrong, the process is started."""
    program = None
    try:
        if _is_lasting(process):
            return None, _of_current_run()
        program = begin(file_name(sys.executable or "python"))
        if program is None:
            return None, None
        # A server that is started outside of any trace would have all its requests in one.
        return program, Arrival(program.variables(), STALE, continues=_current().is_valid)
    except Exception:  # noqa: BLE001  the process must start
        logger.exception("a process is started without the context of its run")
        return program, None


def _is_lasting(process: Any) -> bool:
    target = getattr(process, "_target", None)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', '')}" in _LASTING


def _of_current_run() -> Arrival | None:
    own = _current()
    if not own.is_valid or is_suppressed():
        return None
    return Arrival(context_variables(trace.get_current_span(), None), STALE, continues=False)


def _current() -> trace.SpanContext:
    return trace.get_current_span().get_span_context()
