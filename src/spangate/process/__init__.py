"""Programs that a run starts, each a span with an exit, and with the run's context in its environment.

The functions and the class have the standard library's signatures and behaviour. Spans follow OpenTelemetry's
conventions for CLI programs: named after the program file, of kind CLIENT, with ``process.executable.name``,
``process.pid``, ``process.exit.code`` and, if that is not 0, ``error.type``. Arguments are not recorded: they hold
secrets.
"""

from __future__ import annotations

from spangate._exits import ExitReport, exit_report
from spangate._receiver import Receiver
from spangate._records import Exit
from spangate.process._asyncio import create_subprocess_exec, create_subprocess_shell
from spangate.process._functions import call, check_call, check_output, getoutput, getstatusoutput, run
from spangate.process._instrument import instrument, uninstrument
from spangate.process._popen import Popen, invocation_id
from spangate.process._retries import retry_of
from spangate.process._system import system
from spangate.process._tracer import use_provider
from spangate.process._watch import unwatch, watch

__all__ = [
    "Exit",
    "ExitReport",
    "Popen",
    "Receiver",
    "call",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "exit_report",
    "getoutput",
    "getstatusoutput",
    "instrument",
    "invocation_id",
    "retry_of",
    "run",
    "system",
    "uninstrument",
    "unwatch",
    "use_provider",
    "watch",
]
