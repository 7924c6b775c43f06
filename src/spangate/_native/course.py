"""The course of one loop: what is open in it, what it has used up, whether it has halted, and which steps are legal.

Any thread may take a step. Nothing is called out to under the lock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable
from typing import Final, Literal, TypeAlias

from spangate._dialects.native import HALT_REASONS, UNKNOWN
from spangate._errors import LoopError

Phase: TypeAlias = Literal["new", "open", "over"]
NOT_BEGUN: Final = "the run has not begun: write 'with spangate.run(...) as run:' around its loop"
CLOSED_REASONS: Final = frozenset({"done", "budget_exhausted", UNKNOWN})
"""Reasons that say of a loop that all its work has ended; the others may have cut it short."""


class Turn:
    """One iteration as the course knows it: its ``number``, counted from 1, and the work that is open in it by name."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.work_id: str | None = None
        self.open: dict[object, str] = {}


class Course:
    """Where a loop is. ``max_iters`` is its bound, None for none.

    ``turns`` counts the iterations that have begun, ``reason`` is for what it halted, None while it goes on.
    ``is_exhausted`` says that it was refused another iteration.
    """

    def __init__(self, max_iters: int | None) -> None:
        self.max_iters = max_iters
        self.phase: Phase = "new"
        self.turns = 0
        self.reason: str | None = None
        self.is_exhausted = False
        self._turn: Turn | None = None
        self._schemas: dict[str, str] = {}
        self._attempts: Counter[Hashable] = Counter()
        self._lock = threading.RLock()  # a signal handler may halt the run while this thread holds it

    def enter(self) -> None:
        """Begin the run."""
        with self._lock:
            if self.phase != "new":
                raise LoopError("a run is entered once: call spangate.run(...) again for another")
            self.phase = "open"

    def leave(self) -> None:
        """End the run."""
        self.phase = "over"

    def check(self) -> None:
        """Make sure that the run goes on."""
        if self.phase == "new":
            raise LoopError(NOT_BEGUN)
        if self.reason is not None:
            raise LoopError(f"the run has halted ({self.reason!r}) and does nothing more: call halt() last")
        if self.phase == "over":
            raise LoopError("the run is over: keep its work inside the with block of spangate.run(...)")

    def check_bound(self) -> None:
        """Make sure that the run goes on, and that it has a bound to iterate by."""
        self.check()
        if self.max_iters is None:
            raise LoopError("the loop has no bound: write how many iterations it may take, as max_iters=8")

    def is_used_up(self) -> bool:
        """Say whether no iteration is left to one who asks for the next."""
        self.check()
        self.is_exhausted = self.max_iters is not None and self.turns >= self.max_iters
        return self.is_exhausted

    def begin(self) -> Turn:
        """Begin the next iteration."""
        with self._lock:
            self.check_bound()
            if self._turn is not None:
                raise LoopError(f"iteration {self._turn.number} is still open: leave its block first", "span_open")
            if self.is_used_up():
                what = f"max_iters={self.max_iters} are used up: halt the run, with 'budget_exhausted' or 'done'"
                raise LoopError(what, "budget_exhausted")
            self.turns += 1
            self._turn = Turn(self.turns)
            return self._turn

    def end(self, turn: Turn, *, is_cut_short: bool = False) -> bool:
        """End an iteration. False if it has ended already, by a halt.

        Work that is open in it keeps it from ending unless it ``is_cut_short``.
        """
        with self._lock:
            if self._turn is not turn:
                return False
            if turn.open and not is_cut_short:
                raise _unfinished("the iteration is ended", turn)
            self._turn = None
            return True

    def take_up(self, turn: Turn, work: object, name: str) -> None:
        """Begin work in an iteration."""
        with self._lock:
            self.check()
            if self._turn is not turn:
                raise LoopError(f"{name} is outside an iteration ({turn.number} is over): do it in one that is open")
            turn.open[work] = name

    def put_down(self, turn: Turn, work: object) -> None:
        """End work in an iteration."""
        with self._lock:
            turn.open.pop(work, None)

    def work_on(self, turn: Turn, work_id: str) -> bool:
        """Note what an iteration works on. Only the first word counts; False if this is not it."""
        with self._lock:
            is_first = turn.work_id is None
            turn.work_id = turn.work_id or work_id
            return is_first

    def attempt(self, turn: Turn, *call: Hashable) -> int:
        """Count a call, and return how often it was made for what this iteration works on."""
        with self._lock:
            self._attempts[turn.work_id, call] += 1
            return self._attempts[turn.work_id, call]

    def has_drifted(self, tool: str, schema_hash: str) -> bool:
        """Say whether a tool had another schema before."""
        with self._lock:
            return self._schemas.setdefault(tool, schema_hash) != schema_hash

    @property
    def is_busy(self) -> bool:
        """Whether work is open."""
        turn = self._turn
        return turn is not None and bool(turn.open)

    def unfinished(self, step: str) -> LoopError | None:
        """Return the error that tells which work is open at a ``step``, None if none is."""
        with self._lock:
            turn = self._turn
            return None if turn is None or not turn.open else _unfinished(step, turn)

    def halt(self, reason: str) -> tuple[str, bool]:
        """Halt, and return the reason as it is recorded and whether work is open still. The iteration stays open."""
        with self._lock:
            if self.reason is not None:
                raise LoopError(f"halt({reason!r}) after halt({self.reason!r}): a run halts once, for one reason")
            self.check()
            known = reason if reason in HALT_REASONS else UNKNOWN
            if self._turn is not None and self._turn.open and known in CLOSED_REASONS:
                raise _unfinished(f"halt({reason!r})", self._turn)
            self.reason = known
            return known, self.is_busy


def _unfinished(step: str, turn: Turn) -> LoopError:
    named = ", ".join(turn.open.values())
    what = f"{step} while {named} of iteration {turn.number} is open: leave its with block first (join its thread,"
    return LoopError(f"{what} await its task)", "span_open")
