"""One call of a tool under a ledger: asked before it is made, and told when it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, TypeVar

from opentelemetry import trace

from spangate._dialects._outcome import outcome_named
from spangate._errors import SpangateError
from spangate._exits import expected_outcome
from spangate._ledger.book import Asked, Begun, Book, Ending
from spangate._ledger.errors import RetryBlocked
from spangate._records import Outcome

_logger = logging.getLogger("spangate")
_Answer = TypeVar("_Answer")


class Guard:
    """A call of a tool, made in its ``with`` or ``async with`` block, once.

    The block is not entered if the call is blocked. When it is left, the outcome is written down: an exception is a
    failure (or a time-out, or a cancellation, by its type), everything else a success, unless :meth:`exit` or
    :meth:`fail` say otherwise. Waiting for the disk, for git and for other processes is done in another thread in an
    ``async with`` under asyncio, and here otherwise.
    """

    def __init__(self, book: Book, asked: Asked) -> None:
        self.path = book.path
        self.call = asked.call
        self.span_id = 0
        self.trace_id = 0
        self._asked = asked
        self._book = book
        self._begun: Begun | None = None
        self._outer: Guard | None = None
        self._outcome: Outcome = "ok"
        self._exit_code: int | None = None

    @property
    def begun(self) -> Begun | None:
        """The call as it began; None before the block is entered."""
        return self._begun

    def exit(self, code: int, *, timed_out: bool = False) -> None:
        """Say how the program ended that was run: 0 is a success, -N means killed by signal N."""
        self._exit_code = code
        self._outcome = expected_outcome(code, timed_out=timed_out)

    def fail(self) -> None:
        """Say that the call has failed, though nothing is raised."""
        self._outcome = "error"

    def __enter__(self) -> Guard:
        """Ask the ledger.

        Raises:
            RetryBlocked: the same evidence is on record.
            LedgerError: the ledger cannot be used.
            SpangateError: the working tree cannot be read.
            RuntimeError: the guard has been used before.
        """
        self._entered(self._book.begin(self._placed()))
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Write the outcome down.

        Raises:
            LedgerError: it could not be written, and nothing else is being raised.
        """
        begun, ending = self._left(error)
        self._told(lambda: self._book.finish(begun, ending), error)

    async def __aenter__(self) -> Guard:
        """Ask the ledger; raises as ``with`` does."""
        placed = self._placed()
        self._entered(await _aside(lambda: self._book.begin(placed)))
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Write the outcome down; raises as ``with`` does."""
        begun, ending = self._left(error)
        await _aside(lambda: self._told(lambda: self._book.finish(begun, ending), error))

    def _placed(self) -> Asked:
        if self._begun is not None:
            raise RuntimeError("a guard is for one call: ask the ledger for another")
        context = trace.get_current_span().get_span_context()
        self.trace_id, self.span_id = context.trace_id, context.span_id
        return replace(self._asked, trace_id=self.trace_id, span_id=self.span_id)

    def _entered(self, begun: Begun) -> None:
        self._begun = begun
        self._outer = _current.get()
        _current.set(self)

    def _left(self, error: BaseException | None) -> tuple[Begun, Ending]:
        _current.set(self._outer)  # no token: a generator may be closed in another context than it was begun in
        if self._begun is None:
            raise RuntimeError("a guard that was not entered cannot be left")
        outcome, code = self._outcome, self._exit_code
        if error is not None:
            outcome, code = _ending_by(error, code)
        return self._begun, Ending(outcome, code)

    def _told(self, finish: Callable[[], None], error: BaseException | None) -> None:
        try:
            finish()
        except SpangateError as lost:
            if error is None:
                raise
            _logger.error("how %s ended could not be written down: %s", self.call.tool, lost)  # noqa: TRY400  told in full


_current: Final[ContextVar[Guard | None]] = ContextVar("spangate_guard", default=None)


def current_guard() -> Guard | None:
    """Return the innermost guard in whose block the caller is."""
    return _current.get()


async def _aside(work: Callable[[], _Answer]) -> _Answer:
    """Do what may wait in another thread; at once where no event loop of asyncio waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return await asyncio.to_thread(work)


def _ending_by(error: BaseException, code: int | None) -> tuple[Outcome, int | None]:
    """Say what an exception makes of a call. Those of programs know the exit code."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return expected_outcome(code, timed_out=False), code
    if isinstance(error, RetryBlocked):
        return "control_flow", code  # of a call inside: that one is blocked, this one has not failed
    told = getattr(error, "returncode", None)
    if isinstance(told, int) and not isinstance(told, bool):
        code = told
    named = (outcome_named(kind.__name__) for kind in type(error).__mro__)
    return next((outcome for outcome in named if outcome != "error"), "error"), code
