"""The listening socket, the thread that serves it, and what programs are told to find it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from spangate._errors import SpangateError
from spangate._membership import way_to
from spangate._receiver import Receiver
from spangate._receiver.asgi import Application, Taker
from spangate._receiver.rate import Rate
from spangate._receiver.tokens import Tokens

_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 128
_IDLE_S: Final = 120.0
_LAST_S: Final = 1.0
"""How long requests that are being answered are waited for when the server stops."""


class Server:
    """Listens on loopback from the start, until it is stopped. Its thread is a daemon, and lives no longer than that.

    Raises:
        SpangateError: the libraries that serve are not installed.
    """

    def __init__(self, settings: Receiver, taker: Taker) -> None:
        self._tokens = Tokens()
        self._serve = _serving(
            Application(settings, self._tokens, taker, Rate(settings.max_spans_per_s, time.monotonic))
        )
        self._socket = socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG)
        self._socket.setblocking(False)  # noqa: FBT003  the socket's own name for it
        self._address = f"http://{_LOOPBACK}:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spangate-receiver", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address, as ``http://127.0.0.1:PORT``."""
        return self._address

    def variables(self, trace_id: int, span_id: int) -> Mapping[str, str]:
        """Return what tells the program of a span where its spans are wanted."""
        known = way_to(self._address, self._tokens.of(trace_id, span_id))
        return known | _soon(os.environ) | _round_proxies(os.environ)

    def headers(self, trace_id: int, span_id: int) -> Mapping[str, str]:
        """Return what lets in spans that a forked child records below this one."""
        return {"authorization": f"Bearer {self._tokens.of(trace_id, span_id)}"}

    def forget(self) -> None:
        """Have nothing to do with the socket any more: a forked child is not the one that listens."""
        self._socket.close()

    def stop(self) -> None:
        """Listen no longer."""
        if self._ready.wait(_LAST_S):
            with suppress(RuntimeError):  # its loop may have ended before
                self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(2 * _LAST_S)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._serve(self._socket, self._stopped)


def _serving(application: Application) -> Any:
    """Return what serves an application on a socket until an event is set."""
    try:
        from hypercorn.asyncio import serve
        from hypercorn.config import Config, Sockets
    except ImportError:
        raise SpangateError("a receiver needs hypercorn: pip install 'spangate[receiver]'") from None

    async def serving(listening: socket.socket, stopped: asyncio.Event) -> None:
        config = Config()
        # The one that is there: what it would make itself, child processes would inherit.
        config.create_sockets = lambda: Sockets([], [listening], [])  # type: ignore[method-assign]
        config.errorlog = config.accesslog = None
        config.include_server_header = config.include_date_header = False
        config.keep_alive_timeout = _IDLE_S
        config.keep_alive_max_requests = 1 << 30
        config.graceful_timeout = _LAST_S
        await serve(application, config, shutdown_trigger=stopped.wait)  # type: ignore[arg-type]  # scopes are open

    return serving


_DELAY: Final = "OTEL_BSP_SCHEDULE_DELAY"
_SOON_MS: Final = 100


def _soon(environment: Mapping[str, str]) -> dict[str, str]:
    """Have programs send what they record soon, not after five seconds: a run may be over by then, and is judged.

    What somebody has said is said again: a program may be started with an environment of its own.
    """
    return {_DELAY: environment.get(_DELAY) or str(_SOON_MS)}


_PROXIES: Final = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_NO_PROXY: Final = ("no_proxy", "NO_PROXY")


def _round_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Have programs that send by a proxy not send there what is for this host."""
    if not any(environment.get(name) for name in _PROXIES):
        return {}
    told = {name: environment.get(name, "") for name in _NO_PROXY}
    return {name: ",".join(filter(None, (hosts, _LOOPBACK))) for name, hosts in told.items()}
