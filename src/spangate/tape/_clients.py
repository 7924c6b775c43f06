"""Transports for the clients of httpx and httpx2, and all clients at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from spangate.tape._errors import TapeError
from spangate.tape._tape import Tape
from spangate.tape._transports import Match, async_transport, library_of, through, through_later, transport

_LIBRARIES: Final = ("httpx2", "httpx")


def httpx_transport(tape: Tape, inner: Any = None, *, match: Match | None = None) -> Any:
    """Make a transport for ``httpx.Client(transport=…)`` whose requests go through a tape.

    Args:
        tape: The tape.
        inner: The transport that sends what is recorded; an ``httpx.HTTPTransport()`` by default.
        match: Says of a request whether it goes through the tape; what does not is sent, also in a replay.

    Raises:
        TapeError: httpx is not installed.
    """
    return transport(library_of("httpx"), tape, inner, match)


def httpx_async_transport(tape: Tape, inner: Any = None, *, match: Match | None = None) -> Any:
    """Make a transport for ``httpx.AsyncClient(transport=…)``, as :func:`httpx_transport`."""
    return async_transport(library_of("httpx"), tape, inner, match)


def httpx2_transport(tape: Tape, inner: Any = None, *, match: Match | None = None) -> Any:
    """Make a transport for ``httpx2.Client(transport=…)``, as :func:`httpx_transport`."""
    return transport(library_of("httpx2"), tape, inner, match)


def httpx2_async_transport(tape: Tape, inner: Any = None, *, match: Match | None = None) -> Any:
    """Make a transport for ``httpx2.AsyncClient(transport=…)``, as :func:`httpx_transport`."""
    return async_transport(library_of("httpx2"), tape, inner, match)


@contextmanager
def patch_httpx(tape: Tape, *, match: Match | None = None) -> Iterator[None]:
    """Have every client of httpx and httpx2 go through a tape as long as the block, those that exist already too.

    For frameworks that make clients of their own. Clients with a transport that is not the library's are left alone.

    Args:
        tape: The tape.
        match: Says of a request whether it goes through the tape; what does not is sent, also in a replay.

    Raises:
        TapeError: neither library is installed.
    """
    patches = [_Patch(owner, name, tape, match) for owner, name in _methods()]
    if not patches:
        raise TapeError("neither httpx2 nor httpx is installed, so no client can go through the tape")
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.take_back()


def _methods() -> Iterator[tuple[Any, str]]:
    for name in _LIBRARIES:
        if find_spec(name) is not None:
            library = import_module(name)
            yield library.HTTPTransport, "handle_request"
            yield library.AsyncHTTPTransport, "handle_async_request"


class _Patch:
    """A method of a class with ours in its place. Where others have put theirs over it since, ours does nothing."""

    def __init__(self, owner: Any, name: str, tape: Tape, match: Match | None) -> None:
        self._owner, self._name = owner, name
        self._there: Callable[..., Any] = getattr(owner, name)
        self._is_on = True
        make = self._later if name == "handle_async_request" else self._now
        self._ours = make(tape, match)
        setattr(owner, name, self._ours)

    def _now(self, tape: Tape, match: Match | None) -> Callable[..., Any]:
        there = self._there

        @functools.wraps(there)
        def handle(transport: Any, request: Any) -> Any:
            send = functools.partial(there, transport)
            return through(tape, match, request, send) if self._is_on else send(request)

        return handle

    def _later(self, tape: Tape, match: Match | None) -> Callable[..., Any]:
        there = self._there

        @functools.wraps(there)
        async def handle(transport: Any, request: Any) -> Any:
            send = functools.partial(there, transport)
            return await (through_later(tape, match, request, send) if self._is_on else send(request))

        return handle

    def take_back(self) -> None:
        self._is_on = False
        if vars(self._owner).get(self._name) is self._ours:
            setattr(self._owner, self._name, self._there)
