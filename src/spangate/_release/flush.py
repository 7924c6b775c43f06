"""A request to have everything judged and exported now, handed from thread to thread until somebody answers it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Flush:
    """A flush on its way through the worker and the sender.

    ``deadline`` is on the processor's monotonic clock, in seconds. ``closing`` settles open roots too. ``complete``
    turns False where a run had to stay held or a span was not accepted.
    """

    deadline: float
    closing: bool = False
    complete: bool = True
    _done: threading.Event = field(default_factory=threading.Event)

    def gains_from(self, ends: Iterable[float]) -> bool:
        """Say whether any of these moments comes before the deadline."""
        return any(end <= self.deadline for end in ends)

    def settled(self, pass_on: Callable[[Flush], None]) -> None:
        """Go on, when everything is judged, to whoever exports it."""
        pass_on(self)

    def finish(self) -> None:
        """Answer whoever waits."""
        self._done.set()

    @property
    def is_done(self) -> bool:
        """True once it is answered."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the answer: True only if everything was accepted in time."""
        return self._done.wait(max(seconds, 0.0)) and self.complete


class JudgingFlush(Flush):
    """A flush of what is to be judged only: how the spans then leave is another's affair."""

    __slots__ = ()

    def settled(self, pass_on: Callable[[Flush], None]) -> None:  # noqa: ARG002  whoever it is
        """Answer whoever waits."""
        self.finish()
