"""OTLP spoken over HTTP and gRPC: an ASGI application that turns requests into what was received.

Both come in at one port, since both are told it by the same variable. Specification:
https://opentelemetry.io/docs/specs/otlp/
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from spangate._buffer.received import Received, Reception
from spangate._receiver import Receiver
from spangate._receiver import answers as give
from spangate._receiver.answers import Answer
from spangate._receiver.bodies import BadBodyError, Content, content_of, unpacked
from spangate._receiver.dialogue import Dialogue, dialogue_of
from spangate._receiver.rate import Rate
from spangate._receiver.room import Room, Taken
from spangate._receiver.tokens import Bearer, Tokens
from spangate._telemetry import logger

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

_SCHEME: Final = "bearer "


class Taker(Protocol):
    """Whoever takes in what was received, and hears of what was not. Nothing here raises."""

    def take(self, bearer: Bearer, parts: Sequence[Received]) -> Reception:
        """Hold spans that a program has sent."""

    def refuse(self, reason: str, bearer: Bearer | None, what: str) -> None:
        """Hear of a request that was refused, of a program of ours or, with None, of a stranger."""


class _RefusedError(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


class Application:
    """Answers requests, one after another in the thread of its loop."""

    def __init__(self, settings: Receiver, tokens: Tokens, taker: Taker, rate: Rate) -> None:
        self._settings = settings
        self._tokens = tokens
        self._taker = taker
        self._rate = rate
        self._room = Room(settings.max_pending_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. What goes wrong here is answered, too."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        dialogue = dialogue_of(headers)
        bearer: Bearer | None = None
        try:
            bearer = self._bearer(headers)
            answer = await self._answer(scope, headers, dialogue, bearer, receive)
        except _RefusedError as refused:
            answer = refused.answer
        except Exception:  # noqa: BLE001  whatever it is, the sender is to be answered
            logger.exception("the receiver failed at a request; it goes on")
            answer = give.FAULT
        if answer.reason is not None:
            self._taker.refuse(answer.reason, bearer, answer.message)
        for message in dialogue.answer(answer):
            await send(message)

    def _bearer(self, headers: Mapping[str, str]) -> Bearer:
        told = headers.get("authorization", "")
        if not told.lower().startswith(_SCHEME):
            raise _RefusedError(give.NO_TOKEN)
        bearer = self._tokens.read(told[len(_SCHEME) :].strip())
        if bearer is None:
            raise _RefusedError(give.WRONG_TOKEN)
        return bearer

    async def _answer(
        self, scope: Scope, headers: Mapping[str, str], dialogue: Dialogue, bearer: Bearer, receive: Receive
    ) -> Answer:
        if scope["method"] != "POST" or scope["path"].rstrip("/") != dialogue.path:
            return give.NOT_TRACES
        if not dialogue.is_known:
            return give.UNKNOWN_FORM
        deadline = time.monotonic() + self._settings.request_timeout_s
        with self._room.taken() as taken:
            body = await self._body(headers, receive, taken, deadline)
            try:
                message = unpacked(*dialogue.packed(body), self._settings.max_request_bytes)
                content = content_of(dialogue.protobuf(message), bearer.span_id)
            except BadBodyError as error:
                return give.too_large(str(error)) if error.is_too_large else give.malformed(str(error))
            if not taken(max(len(message) - len(body), 0)):
                return give.BUSY
            await self._slow_down(content.accepted, deadline)
            return self._hold(content, bearer)

    def _hold(self, content: Content, bearer: Bearer) -> Answer:
        reception = self._taker.take(bearer, content.received)
        if reception.outcome != "taken":
            return give.BUSY if reception.outcome == "full" else give.RUN_IS_OVER
        if content.rejected:
            what = f"{content.rejected} spans have a trace id or span id that is none"
            self._taker.refuse("malformed", bearer, what)
            return Answer(200, 0, what, rejected=content.rejected)
        if reception.spans < content.accepted:
            left_out = content.accepted - reception.spans
            self._taker.refuse("run_over", bearer, give.RUN_IS_OVER.message)
            return Answer(200, 0, give.RUN_IS_OVER.message, rejected=left_out)
        return give.OK

    async def _body(self, headers: Mapping[str, str], receive: Receive, taken: Taken, deadline: float) -> bytes:
        """Read a body within the bounds on bytes and time."""
        most = self._settings.max_request_bytes
        told = headers.get("content-length", "")
        if told.isdecimal() and int(told) > most:
            raise _RefusedError(give.too_large(f"{told} bytes are more than the {most} that a request may have"))
        try:
            return await asyncio.wait_for(_read(receive, taken, most), deadline - time.monotonic())
        except (asyncio.TimeoutError, TimeoutError):  # one and the same from Python 3.11 on
            raise _RefusedError(give.TOO_SLOW) from None

    async def _slow_down(self, spans: int, deadline: float) -> None:
        """Keep whoever sends too fast waiting, but not longer than it waits for its answer."""
        wait_s = self._rate.take(spans)
        if wait_s > deadline - time.monotonic():
            self._rate.give_back(spans)
            raise _RefusedError(give.BUSY)
        if wait_s:
            await asyncio.sleep(wait_s)


async def _read(receive: Receive, taken: Taken, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(give.malformed("the connection ended in the midst of a request"))
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _RefusedError(give.too_large(f"a request may have {most} bytes"))
        if not taken(len(piece)):
            raise _RefusedError(give.BUSY)
        if not message.get("more_body", False):
            return b"".join(pieces)
