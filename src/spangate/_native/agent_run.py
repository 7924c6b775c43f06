"""A run as its program sees it: entered and left once, its iterations, its halt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from opentelemetry.trace import Span

from spangate._errors import LoopError
from spangate._native.iteration import Iteration
from spangate._native.loop import Loop


class AgentRun:
    """What :func:`spangate.run` returns. It is entered once, by ``with`` or ``async with``.

    An exception that leaves the block halts the run by itself (``timeout``, ``cancelled``, else ``tool_error``), is
    recorded, and goes on. So does a loop that was refused another iteration and says no more: ``budget_exhausted``. A
    loop that is left in any other way without a halt is ``halt.missing``.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._is_iterated = False

    @property
    def run_id(self) -> str:
        """The id of the run: of the outermost that it is in. Empty before the run has begun, if none was given."""
        return self._loop.run_id

    @property
    def halted(self) -> str | None:
        """For what reason the run has halted, None while it goes on."""
        return self._loop.course.reason

    @property
    def span(self) -> Span:
        """The span ``agent.run``, for attributes of your own.

        Raises:
            SpangateError: the run has not begun.
        """
        return self._loop.span

    def iterations(self) -> Iterations:
        """Return the loop's iterations, for ``for`` or ``async for``, which ends at a halt or when none is left.

        Raises:
            SpangateError: the run does not go on, has no bound, or has been asked before.
        """
        self._loop.course.check_bound()
        if self._is_iterated:
            raise LoopError("iterations() was called before: a run has one loop; for another, open another run")
        self._is_iterated = True
        return Iterations(self._loop)

    @contextmanager
    def iteration(self) -> Iterator[Iteration]:
        """Make one iteration, for a loop that is no ``for`` loop: ``with run.iteration() as it:``.

        Raises:
            SpangateError: another one is open, none is left, or the run does not go on.
        """
        turn = self._loop.begin()
        try:
            yield Iteration(self._loop, turn)
        except BaseException as error:
            self._loop.end(turn, error, is_cut_short=True)
            raise
        self._loop.end(turn)

    def halt(self, reason: str) -> None:
        """End the open iteration, and record for what reason the loop halts.

        Args:
            reason: ``done``, ``budget_exhausted``, ``tool_error``, ``span_open``, ``schema_drift``, ``timeout`` or
                ``cancelled``. Anything else is recorded as ``unknown``, and the run is refused.

        Raises:
            SpangateError: it has halted before, or work is open and the reason does not say so.
        """
        self._loop.halt(reason)

    def __enter__(self) -> AgentRun:
        """Begin the run."""
        self._loop.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run.

        Raises:
            SpangateError: work is open, and nothing else has gone wrong.
        """
        self._loop.leave(error)

    async def __aenter__(self) -> AgentRun:
        """Begin the run."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run."""
        self.__exit__(kind, error, trace)


class Iterations:
    """The iterations of a run, one after the other. Asking for the next ends the one before."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._iteration: Iteration | None = None

    def __iter__(self) -> Iterations:
        """Return itself: there is one loop."""
        return self

    def __next__(self) -> Iteration:
        """Begin the next iteration.

        Raises:
            SpangateError: work of the one before is open still.
        """
        iteration = self._next()
        if iteration is None:
            raise StopIteration
        return iteration

    def __aiter__(self) -> Iterations:
        """Return itself."""
        return self

    async def __anext__(self) -> Iteration:
        """Begin the next iteration."""
        iteration = self._next()
        if iteration is None:
            raise StopAsyncIteration
        return iteration

    def _next(self) -> Iteration | None:
        loop = self._loop
        if self._iteration is not None:
            self._iteration.end()
            self._iteration = None
        if loop.course.reason is not None or loop.course.is_used_up():
            return None
        self._iteration = Iteration(loop, loop.begin())
        return self._iteration
