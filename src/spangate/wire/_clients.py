"""The clients of httpx and httpx2 made to show what they send, all of them or one, and made not to again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from spangate._telemetry import logger
from spangate.wire._observe import observe

_LIBRARIES: Final = ("httpx2", "httpx")
_CLASSES: Final = ("Client", "AsyncClient")
_MARK: Final = "_spangate_watches"

Client = TypeVar("Client")


class _Patches:
    """What was put in place of what. Where others have put something over it since, ours stays, and does nothing."""

    def __init__(self) -> None:
        self._put: dict[Any, tuple[Any, Any]] = {}
        self.are_on = False

    def put(self) -> None:
        """Have every client show what it sends, once."""
        self.are_on = True
        for owner in _classes():
            if owner not in self._put:
                send = owner.send
                owner.send = ours = _showing(send, lambda: self.are_on)
                self._put[owner] = send, ours
        if not self._put:
            logger.warning("neither httpx2 nor httpx is installed, so no request can be looked at")

    def take_back(self) -> None:
        """Put back what was there, where ours is still in place."""
        self.are_on = False
        for owner, (send, ours) in [*self._put.items()]:
            if vars(owner).get("send") is ours:
                owner.send = send
                del self._put[owner]


def _classes() -> Iterator[Any]:
    """Yield the classes of clients that are installed."""
    for library in _LIBRARIES:
        if find_spec(library) is not None:
            module = import_module(library)
            yield from (getattr(module, name) for name in _CLASSES if hasattr(module, name))


def _showing(send: Callable[..., Any], is_on: Callable[[], bool]) -> Callable[..., Any]:
    """Make a method that looks at the request, and then does what ``send`` does."""

    @functools.wraps(send)
    def send_now(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if is_on():
            observe(request)
        return send(client, request, *args, **kwargs)

    @functools.wraps(send)
    async def send_later(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if is_on():
            observe(request)
        return await send(client, request, *args, **kwargs)

    return send_later if inspect.iscoroutinefunction(send) else send_now


_patches: Final = _Patches()


def instrument() -> None:
    """Have every client of httpx and httpx2 show the requests to models that it sends, those that exist already too.

    Calling it again does nothing.
    """
    _patches.put()


def uninstrument() -> None:
    """Undo :func:`instrument`. Clients that are watched by themselves go on."""
    _patches.take_back()


def watch(client: Client) -> Client:
    """Have one client show the requests to models that it sends.

    Args:
        client: A ``Client`` or ``AsyncClient`` of httpx or httpx2, as the SDKs of OpenAI and Anthropic take for
            ``http_client``.

    Returns:
        The same client.

    Raises:
        TypeError: it is no such client.
    """
    if not isinstance(client, tuple(_classes())):
        raise TypeError(f"watch() takes a Client or AsyncClient of httpx or httpx2, not {type(client).__name__}")
    one: Any = client
    if not _is_watched(one):
        show = _showing(_class_send(type(one)), lambda: not _patches.are_on)  # else its class shows it already
        setattr(show, _MARK, True)
        one.send = show.__get__(one)
    return client


def unwatch(client: Client) -> Client:
    """Undo :func:`watch` for a client.

    Returns:
        The same client.
    """
    if _is_watched(client):
        del vars(client)["send"]
    return client


def _is_watched(client: Any) -> bool:
    return hasattr(vars(client).get("send"), _MARK)


def _class_send(kind: Any) -> Callable[..., Any]:
    """Return what sends by the class of a client, whatever that is by then."""

    @functools.wraps(kind.send)
    def send_now(*args: Any, **kwargs: Any) -> Any:
        return kind.send(*args, **kwargs)

    @functools.wraps(kind.send)
    async def send_later(*args: Any, **kwargs: Any) -> Any:
        return await kind.send(*args, **kwargs)

    return send_later if inspect.iscoroutinefunction(kind.send) else send_now
