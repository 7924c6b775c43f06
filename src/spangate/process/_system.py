"""``os.system`` with a span: the same shell, told the context by the command line, since it takes no environment."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from spangate._membership import HEADERS
from spangate._telemetry import logger
from spangate.process._cover import Covered
from spangate.process._environment import STALE
from spangate.process._popen import SHELL
from spangate.process._program import Program, begin

_SYSTEM: Final = os.system


def system(command: Any) -> int:
    """``os.system`` whose shell is a span with an exit, and has the run's context in its environment."""
    begun = _begun(command)
    if begun is None:
        return _SYSTEM(command)
    program, told, secret = begun
    try:
        with Covered():
            status = _SYSTEM(told)
    except BaseException as error:
        program.fails_to_start(error)
        raise
    finally:
        _forget(secret)
    program.runs(None)
    program.exits(os.waitstatus_to_exitcode(status) if os.name == "posix" else status)
    return status


def _begun(command: Any) -> tuple[Program, Any, str | None] | None:
    """Open a span, and return it with the command to run, and the file that this reads a secret from.

    None if nobody traces, or nothing can be run at all.
    """
    if not isinstance(command, str | bytes | os.PathLike):
        return None
    program = None
    try:
        program = begin(SHELL)
        if program is None:
            return None
        if os.name != "posix":
            return program, command, None
        variables = program.variables()
        secret = _written(variables.pop(HEADERS, None))
        return program, _told(os.fsdecode(command), variables, secret), secret
    except Exception:  # noqa: BLE001  the program must start
        logger.exception("a program is started without the context of its run")
        return None if program is None else (program, command, None)


def _told(command: str, variables: Mapping[str, str], secret: str | None) -> str:
    """Return a command that sets variables and then becomes the shell that would have been started anyway."""
    assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    read = "" if secret is None else f"read -r {HEADERS} <{shlex.quote(secret)}; export {HEADERS}; "
    return f"unset {' '.join(STALE)}; {read}{assignments} exec /bin/sh -c {shlex.quote(command)} sh"


def _written(secret: str | None) -> str | None:
    """Write a secret to a file that nobody else may read: command lines are for all to see."""
    if secret is None:
        return None
    number, path = tempfile.mkstemp(prefix="spangate-")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(f"{secret}\n")
    return path


def _forget(path: str | None) -> None:
    if path is not None:
        with suppress(OSError):
            Path(path).unlink()
