"""The standard library's own calls made to trace, and made not to again."""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

from opentelemetry.trace import TracerProvider

from spangate.process import _asyncio, _multiprocessing, _pools, _popen, _system, _tracer

_MISSING: Final = object()


class _Patches:
    """What was put in place of what."""

    def __init__(self) -> None:
        self._put: list[tuple[Any, str, Any, Any]] = []

    def put(self) -> None:
        """Put ours in the place of the standard library's, once."""
        if self._put:
            return
        for owner, name, make in _wanted():
            was = vars(owner).get(name, _MISSING)
            ours = make(was)
            setattr(owner, name, ours)
            self._put.append((owner, name, was, ours))

    def take_back(self) -> None:
        """Put back what was there, where ours is still in place: what others put over it stays."""
        while self._put:
            owner, name, was, ours = self._put.pop()
            if vars(owner).get(name) is not ours:
                continue
            if was is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, was)


def _wanted() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield owner and name of all that is replaced, and what makes the new one of the old."""
    for name, around in _popen.AROUND.items():
        yield subprocess.Popen, name, around
    yield subprocess.Popen, "returncode", lambda _: _popen.RETURNCODE
    yield os, "system", lambda _: _system.system
    for owner in (asyncio, asyncio.subprocess):
        yield owner, "create_subprocess_exec", lambda _: _asyncio.create_subprocess_exec
        yield owner, "create_subprocess_shell", lambda _: _asyncio.create_subprocess_shell
    yield from _multiprocessing.wanted()
    yield from _pools.wanted()


_patches: Final = _Patches()


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Have ``subprocess``, ``os.system``, ``os.popen`` and asyncio do what this module's functions do.

    A ``multiprocessing.Process`` becomes such a program too, and its child continues the trace. Workers of process
    pools do not, but each task that is submitted to a pool runs in the trace of whoever submitted it.

    Code that nobody can change is traced so, whenever it imported what it calls; ``system``, imported from ``os``
    before this, is not. Calling it again only changes the provider.

    Args:
        tracer_provider: Where the spans of programs are recorded, also those of this module's own functions; None: the
            global one.
    """
    _tracer.use_provider(tracer_provider)
    _patches.put()


def uninstrument() -> None:
    """Undo :func:`instrument`. Programs that run go on being watched until they end."""
    _patches.take_back()
    _tracer.use_provider(None)
