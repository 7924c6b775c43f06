"""asyncio's ways to start a program, with a span for each."""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

from spangate._telemetry import logger
from spangate.process._cover import Covered
from spangate.process._popen import SHELL, executable_of
from spangate.process._program import Program, begin

_EXEC: Final = asyncio.create_subprocess_exec
_SHELL: Final = asyncio.create_subprocess_shell
_LIMIT: Final[int] = inspect.signature(_EXEC).parameters["limit"].default


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells the program of its exit when the loop learns of it."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, program: Program) -> None:
        super().__init__(limit, loop)
        self._program = program
        self._transport_of_program: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport_of_program = transport
        super().connection_made(transport)

    def process_exited(self) -> None:
        code = self._transport_of_program.get_returncode()
        if code is not None:
            self._program.exits(code)
        super().process_exited()


class Process(asyncio.subprocess.Process):
    """``asyncio.subprocess.Process`` that tells its program what is done with it."""

    def __init__(self, transport: Any, protocol: Any, loop: asyncio.AbstractEventLoop, program: Program) -> None:
        super().__init__(transport, protocol, loop)
        self._program = program

    async def communicate(self, input: Any = None) -> tuple[bytes, bytes]:  # noqa: A002  the name that it has
        """Interact with the process; see :meth:`asyncio.subprocess.Process.communicate`."""
        with self._program:
            written = await super().communicate(input)
            self._program.writes(*written)
            return written

    def send_signal(self, signal: int) -> None:
        """Send a signal to the process."""
        self._program.is_ended()
        super().send_signal(signal)

    def terminate(self) -> None:
        """Ask the process to end."""
        self._program.is_ended()
        super().terminate()

    def kill(self) -> None:
        """End the process."""
        self._program.is_ended()
        super().kill()


async def create_subprocess_exec(
    program: Any,
    *args: Any,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    limit: int = _LIMIT,
    **kwds: Any,
) -> asyncio.subprocess.Process:
    """``asyncio.create_subprocess_exec`` whose program is a span with an exit, and has the run's context."""
    begun = _begun((program, *args), kwds)
    if begun is None:
        return await _EXEC(program, *args, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit, **kwds)
    loop = asyncio.get_running_loop()
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr, **kwds}
    return await _started(begun, limit, lambda factory: loop.subprocess_exec(factory, program, *args, **streams))


async def create_subprocess_shell(
    cmd: str | bytes, stdin: Any = None, stdout: Any = None, stderr: Any = None, limit: int = _LIMIT, **kwds: Any
) -> asyncio.subprocess.Process:
    """``asyncio.create_subprocess_shell`` whose shell is a span with an exit, and has the run's context."""
    begun = _begun(None, kwds)
    if begun is None:
        return await _SHELL(cmd, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit, **kwds)
    loop = asyncio.get_running_loop()
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr, **kwds}
    return await _started(begun, limit, lambda factory: loop.subprocess_shell(factory, cmd, **streams))


def _begun(command: tuple[Any, ...] | None, kwds: dict[str, Any]) -> Program | None:
    """Open a span, of a shell without a ``command``, and put its context among the keywords.

    Whatever goes wrong, the program is started as asked.
    """
    try:
        name = SHELL if command is None else executable_of((command,), kwds)
        begun = None if name is None else begin(name)
        if begun is not None:
            kwds["env"] = begun.environment(kwds.get("env"))
    except Exception:  # noqa: BLE001  the program must start
        logger.exception("a program is started without the context of its run")
        return None
    return begun


async def _started(
    program: Program, limit: int, start: Callable[[Callable[[], _Protocol]], Awaitable[tuple[Any, Any]]]
) -> asyncio.subprocess.Process:
    loop = asyncio.get_running_loop()
    try:
        with Covered():
            transport, protocol = await start(lambda: _Protocol(limit, loop, program))
    except BaseException as error:
        program.fails_to_start(error)
        raise
    program.runs(transport.get_pid())
    return Process(transport, protocol, loop, program)
