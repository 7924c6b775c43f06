"""Several exporters behind one gate: each has a sender and a thread of its own, so that one's fault costs no other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from spangate._release import Sender
from spangate._release.chunks import Parcel
from spangate._release.flush import Flush


class FanOut:
    """Does with all of some senders what can be done with one. A flush goes from each to the next.

    What is to be handed on, to a gate that holds the run, goes to the ``upstream`` sender if there is one.
    """

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._exporting = self.senders = tuple(senders)
        self._chain()

    def _chain(self) -> None:
        for sender, following in itertools.pairwise(self.senders):
            sender.then = following.put_flush

    def open_upstream(self, upstream: Sender) -> None:
        """Have one more sender, for what is to be handed on."""
        self.senders = (*self._exporting, upstream)
        self._chain()

    def hand_on(self, parcel: Parcel) -> None:
        """Line up a parcel for the gate that holds the run."""
        self.senders[-1].put(parcel)

    @property
    def bodies(self) -> Sequence[Callable[[], None]]:
        """What the threads of the senders do."""
        return [sender.run for sender in self.senders]

    def put(self, parcel: Parcel) -> None:
        """Line up a parcel for every exporter. Each tells it what became of it."""
        first, *others = self._exporting
        for sender, copy in [(sender, parcel.copy()) for sender in others]:  # before anyone lets go of anything
            sender.put(copy)
        first.put(parcel)

    def expect_more(self) -> None:
        """Wait a moment for what is decided now."""
        for sender in self.senders:
            sender.expect_more()

    def expect_no_more(self) -> None:
        """Send what is lined up."""
        for sender in self.senders:
            sender.expect_no_more()

    def put_flush(self, flush: Flush) -> None:
        """Answer ``flush`` when every exporter has dealt with everything that is lined up now."""
        self.senders[0].put_flush(flush)

    def drain(self, patience_s: float = math.inf) -> None:
        """Send what is lined up, in the calling thread."""
        for sender in self.senders:
            sender.drain(patience_s)

    def hurry(self) -> None:
        """Have no more pauses."""
        for sender in self.senders:
            sender.hurry()

    def abandon(self) -> None:
        """Give up what has not left by now."""
        for sender in self.senders:
            sender.abandon()

    def stop(self) -> None:
        """Let the threads end."""
        for sender in self.senders:
            sender.stop()

    def close(self) -> None:
        """Shut the exporters down."""
        for sender in self.senders:
            sender.close()

    def reset(self) -> None:
        """Forget what waits."""
        for sender in self.senders:
            sender.reset()
