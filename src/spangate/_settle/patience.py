"""How long a tree is waited for once its root has ended."""

from __future__ import annotations

from dataclasses import dataclass

from spangate._records import Trigger
from spangate._release.flush import Flush


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The two waits after a root's end, in seconds.

    Attributes:
        grace_s: How long spans that are still open are waited for.
        settle_s: How long a tree in which nothing is open stays open for a span that may start yet.

    Raises:
        ValueError: a wait that is negative or not a number.
    """

    grace_s: float = 5.0
    settle_s: float = 0.2

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r}: a wait must be zero or more seconds")

    def over(self, root_ended_at: float, quiet_at: float | None, now: float, flush: Flush | None) -> Trigger | None:
        """Return why a run whose root has ended is settled at ``now``, or None if it must still wait.

        ``quiet_at`` is since when nothing in it is open, None while something is.
        """
        if flush is not None and flush.closing:
            return "shutdown"
        if flush is not None and quiet_at is not None:
            return "force_flush"
        waited, due = (now - root_ended_at, self.grace_s) if quiet_at is None else (now - quiet_at, self.settle_s)
        return "root_end" if waited >= due else None

    def grace_end(self, root_ended_at: float) -> float:
        """Return the moment at which spans that are still open are waited for no longer."""
        return root_ended_at + self.grace_s
