"""A loop and its spans: the run, its iterations and its halt, opened and closed as its course allows."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import context
from opentelemetry.trace import Span

from spangate._canonical import text_hash
from spangate._dialects.genai import OPERATION
from spangate._dialects.native import UNKNOWN
from spangate._errors import LoopError
from spangate._hosts import carried_run_id, open_run, with_run_id
from spangate._membership import RUN_ID
from spangate._native.course import CLOSED_REASONS, NOT_BEGUN, Course, Turn
from spangate._native.recorder import Recorder, fail, reason_of
from spangate._native.standing import Standing
from spangate._telemetry import logger

_FAILURES: Final = frozenset({"tool_error", "span_open", "schema_drift", "timeout", "cancelled"})
"""Reasons by which a run says of itself that it failed."""


class Loop:
    """What a run, its iterations and their work share. ``facts`` are the attributes of the run's span.

    ``run_id`` is the id of the outermost run that this one is in, else its own: the one that was given, or a new one.
    """

    def __init__(self, course: Course, recorder: Recorder, facts: Mapping[str, Any], run_id: str | None) -> None:
        self.course = course
        self.recorder = recorder
        self.run_id = run_id or ""
        self._facts = facts
        self._standing: Standing | None = None
        self._turns: dict[Turn, Standing] = {}
        self._failure: BaseException | str | None = None

    @property
    def span(self) -> Span:
        """The span of the run.

        Raises:
            LoopError: the run has not begun.
        """
        return self._entered.span

    @property
    def _entered(self) -> Standing:
        if self._standing is None:
            raise LoopError(NOT_BEGUN)
        return self._standing

    def enter(self) -> None:
        """Open the run, and have the current context carry its id."""
        self.course.enter()
        around = context.get_current()
        outer = carried_run_id(around) or os.environ.get(RUN_ID)
        self.run_id = outer or self.run_id or secrets.token_hex(8)
        facts = {OPERATION: "invoke_agent", "agent.run_id": self.run_id, **self._facts}
        span = self.recorder.start("agent.run", around, facts)
        own = span.get_span_context()
        if own.is_valid and span.is_recording():
            open_run(self.run_id, own.trace_id, own.span_id, is_own=outer is None)
        self._standing = Standing(span, with_run_id(self.run_id, around))
        self._standing.enter()

    def begin(self) -> Turn:
        """Begin the next iteration."""
        turn = self.course.begin()
        facts = {
            "agent.iteration": turn.number,
            "agent.budget_remaining": (self.course.max_iters or turn.number) - turn.number,
        }
        here = self._entered.here()
        standing = self._turns[turn] = Standing(self.recorder.start("agent.iter", here, facts), here)
        standing.enter()
        return turn

    def standing_of(self, turn: Turn) -> Standing:
        """Return where an iteration that is open stands."""
        return self._turns[turn]

    def end(self, turn: Turn, error: BaseException | None = None, *, is_cut_short: bool = False) -> None:
        """End an iteration, if a halt has not done so. Work that is open keeps it unless it ``is_cut_short``."""
        if not self.course.end(turn, is_cut_short=is_cut_short):
            return
        standing = self._turns.pop(turn)
        self.work_on(turn, standing, text_hash(f"{self.run_id}:{turn.number}"))
        if error is not None:
            fail(standing.span, error)
        standing.leave()
        standing.span.end()

    def work_on(self, turn: Turn, standing: Standing, work_id: str | None) -> None:
        """Note what an iteration works on, unless that is known."""
        if work_id is not None and self.course.work_on(turn, work_id):
            standing.span.set_attribute("agent.work_id", work_id)

    def halt(self, reason: str, error: BaseException | None = None) -> None:
        """End what is open of the loop, and write for what reason it halts. ``error`` is what made it."""
        known, is_busy = self.course.halt(reason)
        if known == UNKNOWN:
            logger.warning("halt(%r): there is no such reason, so the run will be refused", reason)
        self._close_turns(error)
        facts = {
            "agent.halt_reason": known,
            "agent.last_iteration": self.course.turns,
            "agent.span_still_open": is_busy,
        }
        self.recorder.start("agent.halt", self._entered.inside, facts).end()
        if known in _FAILURES:
            self._fail(error or known)

    def leave(self, error: BaseException | None) -> None:
        """End the run. Where nobody has halted it, but the reason is known, that is written.

        Raises:
            LoopError: work is open still, and nothing else has gone wrong.
        """
        unfinished: LoopError | None = None
        try:
            if self.course.reason is None:
                unfinished = self._halt_by_itself(error)
        finally:
            if isinstance(error, LoopError):
                error.halt_reason = "tool_error"  # which is what it is to a run around this one
            self.course.leave()
            self._close_turns(error)
            if error is not None:
                self._fail(error)
            self._entered.leave()
            self._entered.span.end()
        if unfinished is not None:
            raise unfinished

    def _halt_by_itself(self, error: BaseException | None) -> LoopError | None:
        unfinished = self.course.unfinished("the run is left") if error is None else None
        cause = error or unfinished
        if cause is not None:
            reason = reason_of(cause)
            self.halt("span_open" if self.course.is_busy and reason in CLOSED_REASONS else reason, cause)
        elif self.course.is_exhausted:
            self.halt("budget_exhausted")
        return unfinished

    def _close_turns(self, error: BaseException | None) -> None:
        for turn in [*self._turns]:
            self.end(turn, error, is_cut_short=True)

    def _fail(self, error: BaseException | str) -> None:
        if error is not self._failure:
            self._failure = error
            fail(self._entered.span, error)
