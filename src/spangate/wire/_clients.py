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
                owner.send = ours = _showing(send, self)
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


def _showing(send: Callable[..., Any], patches: _Patches) -> Callable[..., Any]:
    """Make a method that looks at the request, and then does what ``send`` does."""

    @functools.wraps(send)
    def send_now(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if patches.are_on:
            observe(request)
        return send(client, request, *args, **kwargs)

    @functools.wraps(send)
    async def send_later(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if patches.are_on:
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
    """Have one client show the requests to models that it sends. It is one more of its event hooks.

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
    hooks = _hooks_of(client)
    if not any(hook in (_shown, _shown_later) for hook in hooks):
        is_async = hasattr(client, "aclose")
        hooks.append(_shown_later if is_async else _shown)
    return client


def unwatch(client: Client) -> Client:
    """Undo :func:`watch` for a client.

    Returns:
        The same client.
    """
    hooks = _hooks_of(client)
    hooks[:] = [hook for hook in hooks if hook not in (_shown, _shown_later)]
    return client


def _hooks_of(client: Any) -> list[Any]:
    hooks: list[Any] = client.event_hooks["request"]
    return hooks


def _shown(request: Any) -> None:
    if not _patches.are_on:  # else it was shown when it was sent
        observe(request)


async def _shown_later(request: Any) -> None:
    _shown(request)
