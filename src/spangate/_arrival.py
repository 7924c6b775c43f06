"""What a child process does before its own work, and a worker around each task, to be in the trace of whoever asked.

Both travel in pickles. An interpreter that cannot import this package must do its work all the same, so what is pickled
are a few lines of plain Python that try. Every child imports this module, so it needs little.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from opentelemetry import baggage, context, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from spangate._attach import attach_parent
from spangate._hosts import as_errand, hand_on

_ARRIVES: Final = """
import os
for name in stale:
    os.environ.pop(name, None)
os.environ.update(variables)
if continues:
    try:
        from spangate._attach import attach_parent
        attach_parent(variables)
    except Exception:
        pass
"""
_TASK: Final = """
try:
    from spangate._arrival import Carried
    task = Carried(function, carrier)
except Exception:
    task = function
"""


def put_in_place(variables: Mapping[str, str], stale: Iterable[str]) -> None:
    """Write variables to the environment of this process, and take out those that are ``stale``."""
    for name in stale:
        os.environ.pop(name, None)
    os.environ.update(variables)


class Arrival:
    """What a child process is told when it starts. Where the child is a new interpreter, to unpickle it is to do it."""

    def __init__(self, variables: Mapping[str, str], stale: Iterable[str], *, continues: bool) -> None:
        self._variables = dict(variables)
        self._stale = tuple(stale)
        self._continues = continues

    def arrives(self) -> None:
        """Do it in a child that is forked. What is current there is a copy of a span that lives in the parent."""
        put_in_place(self._variables, self._stale)
        if trace.get_current_span().get_span_context().is_valid:
            context.attach(_without_span())
        if self._continues:
            attach_parent(self._variables)

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the lines that do it, and then nothing."""
        names = {"variables": self._variables, "stale": self._stale, "continues": self._continues}
        return exec, (_ARRIVES, names)


class Carried:
    """A task that runs in the trace and with the baggage of whoever submitted it, and is otherwise what it was."""

    __slots__ = ("_carrier", "_function")

    def __init__(self, function: Callable[..., Any], carrier: Mapping[str, str]) -> None:
        self._function = function
        self._carrier = carrier

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        inside = TraceContextTextMapPropagator().extract(self._carrier, _without_span())
        token = context.attach(as_errand(W3CBaggagePropagator().extract(self._carrier, inside)))
        try:
            return self._function(*args, **kwargs)
        finally:
            context.detach(token)
            hand_on()  # the worker may be ended as soon as the result is there

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the lines that make it again, and the task alone where they cannot."""
        told = {"function": self._function, "carrier": self._carrier}
        return eval, ("exec(lines, told) or told['task']", {"lines": _TASK, "told": told})


def _without_span() -> Context:
    return baggage.clear(trace.set_span_in_context(trace.INVALID_SPAN))
