"""``subprocess.run`` and its like, as they are, but for the class that starts the program.

Each is the standard library's own function with another ``Popen`` among its globals: what it does with arguments,
timeouts and output is not repeated here and cannot differ.
"""

from __future__ import annotations

import functools
import subprocess
from types import FunctionType
from typing import Any, Final

from spangate.process._popen import Popen

_NAMES: Final = ("run", "call", "check_call", "check_output", "getstatusoutput", "getoutput")


def _with_globals(function: Any, names: dict[str, Any]) -> Any:
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    return functools.update_wrapper(made, function)


def _functions() -> dict[str, Any]:
    names = {**vars(subprocess), "Popen": Popen}
    for name in _NAMES:
        names[name] = _with_globals(getattr(subprocess, name), names)
        names[name].__kwdefaults__ = getattr(subprocess, name).__kwdefaults__
    return {name: names[name] for name in _NAMES}


_made: Final = _functions()
run = _made["run"]
call = _made["call"]
check_call = _made["check_call"]
check_output = _made["check_output"]
getstatusoutput = _made["getstatusoutput"]
getoutput = _made["getoutput"]
