"""Clients of httpx and httpx2 through a tape: their requests are decisions, their responses come piece by piece.

Both libraries have the same interface. What belongs to one is found by the class of the request at hand.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from spangate.tape._errors import ReplayedError, ReplayMiss, TapeError
from spangate.tape._http import content_of, decision_of, head, headers_of, refusal, text_or_bytes
from spangate.tape._outcomes import Outcome
from spangate.tape._pending import Pending
from spangate.tape._replaying import Replaying
from spangate.tape._tape import Tape

Send: TypeAlias = Callable[[Any], Any]
SendLater: TypeAlias = Callable[[Any], Awaitable[Any]]
Match: TypeAlias = Callable[[Any], bool]


def through(tape: Tape, match: Match | None, request: Any, send: Send) -> Any:
    """Answer a request from the tape, or send it and keep what comes."""
    if match is not None and not match(request):
        return send(request)
    request.read()
    pending = _pending(tape, request)
    if not isinstance(pending, Pending):
        return pending
    if pending.outcome is not None:
        return _answer(request, pending.outcome)
    try:
        response = send(_plain(request))
    except Exception as error:
        pending.observed(Outcome(error=error))
        raise
    response.stream = _Library.of(request).watched(response, pending)
    return response


async def through_later(tape: Tape, match: Match | None, request: Any, send: SendLater) -> Any:
    """Answer a request from the tape, as :func:`through`."""
    if match is not None and not match(request):
        return await send(request)
    await request.aread()
    pending = _pending(tape, request)
    if not isinstance(pending, Pending):
        return pending
    if pending.outcome is not None:
        return _answer(request, pending.outcome)
    try:
        response = await send(_plain(request))
    except Exception as error:
        pending.observed(Outcome(error=error))
        raise
    response.stream = _Library.of(request).watched(response, pending)
    return response


def _pending(tape: Tape, request: Any) -> Any:
    """Make the decision; where it was not recorded, return the response that says so."""
    content_type = request.headers.get("content-type", "").encode("utf-8", "replace")
    kind, payload = decision_of(request.method, str(request.url), content_type, request.content)
    try:
        return tape.decide(kind, payload)
    except ReplayMiss as miss:
        if isinstance(tape, Replaying):
            tape.hide(miss)
        status, headers, body = refusal(miss)
        return _Library.of(request).response(status, headers, [body])


def _plain(request: Any) -> Any:
    """Ask for what a person can read in the cassette."""
    request.headers["accept-encoding"] = "identity"
    return request


def _answer(request: Any, outcome: Outcome) -> Any:
    library = _Library.of(request)
    if outcome.error is not None and outcome.chunks is None:
        raise library.error(outcome.error, request)
    kept = outcome.value if isinstance(outcome.value, dict) else {}
    chunks = [content_of(chunk) for chunk in outcome.chunks or ()]
    error = None if outcome.error is None else library.error(outcome.error, request)
    return library.response(int(kept.get("status", 200)), headers_of(kept), chunks, error)


class _Library:
    """httpx or httpx2."""

    def __init__(self, module: Any) -> None:
        self._module = module
        bases = (module.SyncByteStream, module.AsyncByteStream)
        self._pieces: Any = type("Pieces", (_Pieces, *bases), {})
        self._watched: Any = type("Watched", (_Watched, *bases), {})

    @classmethod
    def of(cls, request: Any) -> _Library:
        """Return the library that a request belongs to."""
        return _library(type(request).__module__.partition(".")[0])

    def response(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        chunks: Sequence[bytes],
        error: BaseException | None = None,
    ) -> Any:
        """Make a response."""
        return self._module.Response(status, headers=list(headers), stream=self._pieces(chunks, error))

    def watched(self, response: Any, pending: Pending) -> Any:
        """Make the stream of a response one that keeps what is read of it."""
        kept = head(response.status_code, response.headers.multi_items())
        return self._watched(response.stream, kept, pending)

    def error(self, error: BaseException, request: Any) -> BaseException:
        """Make a recorded error of the library again, by its name; any other stays as it is."""
        if not isinstance(error, ReplayedError):
            return error
        kind = getattr(self._module, error.kind.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, self._module.TransportError):
            made: BaseException = kind(error.message, request=request)
            return made
        return error


@cache
def _library(name: str) -> _Library:
    return _Library(sys.modules[name])


class _Pieces:
    """The body of a replayed response."""

    def __init__(self, chunks: Sequence[bytes], error: BaseException | None) -> None:
        self._chunks = chunks
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._error is not None:
            raise self._error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if self._error is not None:
            raise self._error


class _Watched:
    """The body of a response that is being recorded: it is kept once it is over, or nobody reads on."""

    def __init__(self, stream: Any, kept: dict[str, Any], pending: Pending) -> None:
        self._stream = stream
        self._kept = kept
        self._pending: Pending | None = pending
        self._chunks: list[str | bytes] = []
        self._is_whole = False
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream:
                self._chunks.append(text_or_bytes(chunk))
                yield chunk
            self._is_whole = True
        except Exception as error:
            self._error = error
            raise
        finally:
            self._keep()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._chunks.append(text_or_bytes(chunk))
                yield chunk
            self._is_whole = True
        except Exception as error:
            self._error = error
            raise
        finally:
            self._keep()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._keep()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._keep()

    def _keep(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            is_partial = not self._is_whole and self._error is None
            pending.observed(Outcome(self._kept, self._chunks, is_partial=is_partial, error=self._error))


def transport(library: Any, tape: Tape, inner: Any, match: Match | None) -> Any:
    """Make a transport of a library's clients; ``inner`` sends what is not in the tape."""
    chosen = inner if inner is not None else library.HTTPTransport()

    class TapeTransport(library.BaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            return through(tape, match, request, chosen.handle_request)

        def close(self) -> None:
            chosen.close()

    return TapeTransport()


def async_transport(library: Any, tape: Tape, inner: Any, match: Match | None) -> Any:
    """Make a transport of a library's asynchronous clients."""
    chosen = inner if inner is not None else library.AsyncHTTPTransport()

    class AsyncTapeTransport(library.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            return await through_later(tape, match, request, chosen.handle_async_request)

        async def aclose(self) -> None:
            await chosen.aclose()

    return AsyncTapeTransport()


def library_of(name: str) -> Any:
    """Return a library by its name.

    Raises:
        TapeError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise TapeError(f"{name} is not installed") from None
