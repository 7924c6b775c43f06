"""Tasks of process pools, each in the trace of whoever submitted it: a pool may serve several runs at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures.process import ProcessPoolExecutor
from multiprocessing.pool import Pool, ThreadPool
from typing import Any, Final

from opentelemetry import context, trace

from spangate._arrival import Carried
from spangate._sdk.takeover import is_suppressed
from spangate._telemetry import logger
from spangate.process._environment import carrier_of
from spangate.process._popen import Method

_FUNCTION: Final = "func"


def submitting(position: int) -> Callable[[Method], Method]:
    """Return what puts around a method of a pool that the function at ``position`` carries the current context."""

    def around(original: Method) -> Method:
        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], ThreadPool):  # a thread is no process
                return original(*args, **kwargs)
            if len(args) > position:
                args = (*args[:position], _carried(args[position]), *args[position + 1 :])
            elif _FUNCTION in kwargs and isinstance(args[0], Pool):
                kwargs[_FUNCTION] = _carried(kwargs[_FUNCTION])
            return original(*args, **kwargs)

        return method

    return around


def wanted() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield owner and name of all that is replaced, and what makes the new one of the old."""
    yield ProcessPoolExecutor, "submit", submitting(1)
    yield Pool, "apply_async", submitting(1)
    if "_guarded_task_generation" in vars(Pool):  # where ``map``, ``imap``, ``starmap`` and their like meet
        yield Pool, "_guarded_task_generation", submitting(2)


def _carried(function: Any) -> Any:
    """Return a function that runs in the context that is current now, or the same one if none is."""
    try:
        if not trace.get_current_span().get_span_context().is_valid or is_suppressed():
            return function
        return Carried(function, carrier_of(context.get_current()))
    except Exception:  # noqa: BLE001  the task must be submitted
        logger.exception("a task is submitted without the context of its run")
        return function
