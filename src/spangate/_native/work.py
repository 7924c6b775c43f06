"""Work in an iteration, whatever it is: a span for as long as its block, from whatever thread or task it is done in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, TypeAlias

from opentelemetry.trace import Span, SpanKind

from spangate._errors import LoopError
from spangate._native.course import Turn
from spangate._native.loop import Loop
from spangate._native.recorder import fail
from spangate._native.standing import Standing

Cause: TypeAlias = "Work | str | int"
_CAUSED_BY: Final = "caused_by"
_GENERATION_ID: Final = "generation_id"


class Work:
    """A span below an iteration. It is entered once.

    ``name`` is what it is called in errors, ``facts`` are the attributes that it starts with.
    """

    _span_name = ""
    _kind = SpanKind.INTERNAL

    def __init__(self, loop: Loop, turn: Turn, name: str, facts: Mapping[str, Any]) -> None:
        self._loop = loop
        self._turn = turn
        self._name = name
        self._facts = dict(facts)
        self._standing: Standing | None = None

    @property
    def span(self) -> Span:
        """The span, for attributes of your own.

        Raises:
            SpangateError: it has not begun.
        """
        if self._standing is None:
            raise LoopError(f"{self._name} has not begun: write 'with' before it")
        return self._standing.span

    @property
    def span_id(self) -> str:
        """The id of the span, 16 hex digits, by which other work may name it as its cause."""
        return format(self.span.get_span_context().span_id, "016x")

    def _begin(self, work_id: str | None) -> None:
        if self._standing is not None:
            raise LoopError(f"{self._name} was entered before: make another for another call")
        loop, turn = self._loop, self._turn
        loop.course.take_up(turn, self, self._name)
        try:
            above = loop.standing_of(turn)
            loop.work_on(turn, above, work_id)
            here = above.here()
            self._standing = Standing(loop.recorder.start(self._span_name, here, self._facts, self._kind), here)
            self._standing.enter()
        except BaseException:
            loop.course.put_down(turn, self)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it. An exception is recorded, and goes on."""
        standing = self._standing
        if standing is None:
            return
        try:
            self._finish(error)
        finally:
            standing.leave()
            standing.span.end()
            self._loop.course.put_down(self._turn, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.__exit__(kind, error, trace)

    def _finish(self, error: BaseException | None) -> None:
        if error is not None:
            fail(self.span, error)

    def _set(self, facts: Mapping[str, Any]) -> None:
        self.span.set_attributes({key: value for key, value in facts.items() if value is not None})


def evidence(caused_by: Iterable[Cause], generation_id: str | None) -> dict[str, Any]:
    """Return what a caller declares of work: what caused it, and by which id it is compared between runs."""
    causes = [_span_id(cause) for cause in caused_by]
    return {_CAUSED_BY: causes or None, _GENERATION_ID: generation_id}


def _span_id(cause: Cause) -> str:
    return cause.span_id if isinstance(cause, Work) else format(cause, "016x") if isinstance(cause, int) else cause
