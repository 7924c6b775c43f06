"""How fast spans may come: a bucket that fills with time."""

from __future__ import annotations

from collections.abc import Callable


class Rate:
    """Lets ``per_second`` through, and a second's worth at once. ``clock`` gives monotonic seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._free_at = clock()

    def take(self, amount: int) -> float:
        """Book an amount, and return the seconds until it may pass."""
        now = self._clock()
        self._free_at = max(self._free_at, now - 1.0) + amount / self._per_second
        return max(self._free_at - now, 0.0)

    def give_back(self, amount: int) -> None:
        """Undo a booking."""
        self._free_at -= amount / self._per_second
