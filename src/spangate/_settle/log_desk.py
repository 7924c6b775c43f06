"""A gate as its log processors see it: where a record belongs, and when everything is decided."""

from __future__ import annotations

from collections.abc import Callable

from spangate._buffer import Buffer
from spangate._buffer.kept import Fate, Kept
from spangate._release.flush import JudgingFlush
from spangate._settle.worker import Worker


class LogDesk:
    """Between a gate and its log processors.

    ``max_bytes`` is how much the gate holds at most; ``is_closed`` says that it is shut down, and holds nothing.
    """

    def __init__(self, buffer: Buffer, worker: Worker, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.is_closed = False
        self._buffer = buffer
        self._worker = worker
        self._at_end: list[Callable[[], None]] = []

    def keep(self, kept: Kept, run_id: str | None) -> Fate:
        """Hold a record with its run, or say what becomes of it at once."""
        return self._buffer.keep(kept, run_id)

    @property
    def holds_records(self) -> bool:
        """Whether any record waits for a decision."""
        return self._buffer.holds_records

    def settle(self, deadline: float) -> bool:
        """Have every run judged whose root has ended. False if one had to stay held, or there was no time."""
        if self.is_closed or not self._worker.has_started:
            return True
        return self._worker.flush(JudgingFlush(deadline))

    def at_end(self, act: Callable[[], None]) -> None:
        """Have something done when the gate is shut down and everything is decided."""
        self._at_end.append(act)

    def never_mind(self, act: Callable[[], None]) -> None:
        """Have it done no more."""
        if act in self._at_end:
            self._at_end.remove(act)

    def close(self) -> None:
        """Say that everything is decided."""
        self.is_closed = True
        for act in [*self._at_end]:
            act()
