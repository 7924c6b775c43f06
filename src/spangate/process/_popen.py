"""``subprocess.Popen`` with a span for each program: what is put around its methods, and a class that has it.

The methods do what they did: arguments, results and exceptions are the same, but for the environment of the child.
An exit is noted when Python learns of it, which is when ``returncode`` is set.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from spangate._telemetry import logger
from spangate.process._cover import Covered
from spangate.process._environment import telling
from spangate.process._program import Program, begin

PROGRAM: Final = "_spangate_program"
_CODE: Final = "returncode"
_PARAMETERS: Final = [*inspect.signature(subprocess.Popen).parameters]
_ENV: Final = _PARAMETERS.index("env")
_SHELL: Final = _PARAMETERS.index("shell")
_PREEXEC: Final = _PARAMETERS.index("preexec_fn")
_EXECUTABLE: Final = _PARAMETERS.index("executable")

SHELL: Final = "cmd.exe" if os.name == "nt" else "sh"
"""The program file that runs command lines."""
Method: TypeAlias = Callable[..., Any]
Arguments: TypeAlias = tuple[Any, ...]
Keywords: TypeAlias = dict[str, Any]


def starting(original: Method) -> Method:
    """Put the start of a span around ``Popen.__init__``."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  whose place it takes
        program, args, kwargs = _begun(args, kwargs)
        if program is None:
            original(self, *args, **kwargs)
            return
        vars(self)[PROGRAM] = program
        try:
            with Covered():
                original(self, *args, **kwargs)
        except BaseException as error:
            program.fails_to_start(error)
            raise
        program.runs(self.pid)

    return __init__


def waiting(original: Method) -> Method:
    """Put around ``Popen.wait`` that a program may have taken too long."""

    @functools.wraps(original)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except subprocess.TimeoutExpired:
            tell(self, Program.expires)
            raise

    return wait


def communicating(original: Method) -> Method:
    """Put around ``Popen.communicate`` that what a program wrote is known afterwards."""

    @functools.wraps(original)
    def communicate(self: Any, *args: Any, **kwargs: Any) -> Any:
        program = vars(self).get(PROGRAM)
        if program is None:
            return original(self, *args, **kwargs)
        with program:
            try:
                written = original(self, *args, **kwargs)
            except subprocess.TimeoutExpired:
                program.expires()
                raise
            tell(self, lambda told: told.writes(*written))
            return written

    return communicate


def signalling(original: Method) -> Method:
    """Put around ``Popen.send_signal``, which ``kill`` and ``terminate`` call, that the run ends its program itself."""

    @functools.wraps(original)
    def send_signal(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell(self, Program.is_ended)
        return original(self, *args, **kwargs)

    return send_signal


def _get_code(self: Any) -> int | None:
    try:
        code: int | None = vars(self)[_CODE]
    except KeyError:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {_CODE!r}") from None
    return code


def _set_code(self: Any, code: int | None) -> None:
    vars(self)[_CODE] = code
    if code is not None:
        tell(self, lambda program: program.exits(code))


def _delete_code(self: Any) -> None:
    del vars(self)[_CODE]


def tell(popen: Any, what: Callable[[Program], None]) -> None:
    """Tell a program what happened to it, if it is traced. Whatever goes wrong then is not the caller's affair."""
    program = vars(popen).get(PROGRAM)
    if program is None:
        return
    try:
        what(program)
    except Exception:  # noqa: BLE001  whoever waits for a program must learn how it ended, whatever we make of it
        logger.exception("the exit of a program could not be noted; its span stays open")


AROUND: Final[dict[str, Callable[[Method], Method]]] = {
    "__init__": starting,
    "wait": waiting,
    "communicate": communicating,
    "send_signal": signalling,
}
"""What is put around which method of ``subprocess.Popen``."""

RETURNCODE: Final = property(_get_code, _set_code, _delete_code, "The exit code, None until it is known.")


class Popen(subprocess.Popen[Any]):
    """``subprocess.Popen`` whose program is a span with an exit, and has the run's context in its environment."""

    __init__ = starting(subprocess.Popen.__init__)
    wait = waiting(subprocess.Popen.wait)
    communicate = communicating(subprocess.Popen.communicate)
    send_signal = signalling(subprocess.Popen.send_signal)
    returncode = RETURNCODE


def invocation_id(popen: Any) -> str | None:
    """Return the invocation id of the program of a ``Popen``, None if it is not traced."""
    program = vars(popen).get(PROGRAM)
    return None if program is None else program.invocation_id


def _begun(args: Arguments, kwargs: Keywords) -> tuple[Program | None, Arguments, Keywords]:
    """Open a span, and put its context among the arguments. Whatever goes wrong, the program is started as asked."""
    program = None
    try:
        name = executable_of(args, kwargs)
        program = None if name is None else begin(name)
        return (None, args, kwargs) if program is None else (program, *_in_context(program, args, kwargs))
    except Exception:  # noqa: BLE001  the program must start
        logger.exception("a program is started without the context of its run")
        return program, args, kwargs


def _in_context(program: Program, args: Arguments, kwargs: Keywords) -> tuple[Arguments, Keywords]:
    """Have the child told its context in its environment.

    Where the caller gave none, but a function that may write to it in the child, that function is preceded.
    """
    given = _argument(args, kwargs, _ENV)
    preexec = _argument(args, kwargs, _PREEXEC)
    if given is not None and not hasattr(given, "items"):
        return args, kwargs  # it is refused
    if given is None and preexec is not None:
        return _with(args, kwargs, _PREEXEC, telling(program.variables(), preexec))
    return _with(args, kwargs, _ENV, program.environment(given))


def executable_of(args: Sequence[Any], kwargs: Keywords) -> str | None:
    """Return the name of the program file that arguments of ``Popen`` start; None if they start none."""
    given = _argument(args, kwargs, _EXECUTABLE)
    if given is None and _argument(args, kwargs, _SHELL):
        return SHELL
    if given is None:
        given = _argument(args, kwargs, 0)
    if type(given) is list or (isinstance(given, Sequence) and not isinstance(given, str | bytes)):
        given = given[0] if given else None
    if type(given) is str:  # as nearly always; the rest takes its time
        return file_name(given)
    if given is None:
        return None
    return file_name(os.fsdecode(given)) if isinstance(given, str | bytes | os.PathLike) else "program"


def file_name(path: str) -> str:
    """Return the last part of a path; a path object would take as long as the rest of the arguments together."""
    return path.rpartition(os.sep)[2]


def _argument(args: Sequence[Any], kwargs: Keywords, index: int) -> Any:
    return args[index] if len(args) > index else kwargs.get(_PARAMETERS[index])


def _with(args: Arguments, kwargs: Keywords, index: int, value: Any) -> tuple[Arguments, Keywords]:
    """Return the arguments with another value for one parameter, by position if it was given so."""
    if len(args) > index:
        return (*args[:index], value, *args[index + 1 :]), kwargs
    return args, {**kwargs, _PARAMETERS[index]: value}
