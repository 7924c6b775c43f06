"""What is lined up for one exporter, in its order, and whose turn it is to deal with it."""

from __future__ import annotations

import threading
from collections import deque


class Line:
    """A queue from which several threads may take, one at a time.

    Whoever takes holds ``turn`` until that has been dealt with. As a rule that is the sender's thread; while threads
    start, or where none can, it is whoever flushes, and without turns one would answer a flush while the other still
    has in hand what lay before it.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._items: deque[object] = deque()
        self._rung = threading.Event()

    def put(self, item: object) -> None:
        """Line up something that is not None."""
        self._items.append(item)
        self._rung.set()

    def __bool__(self) -> bool:
        """Whether anything is lined up."""
        return bool(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def wait(self) -> None:
        """Wait until something is there. One thread may do so."""
        while not self._items:
            self._rung.clear()
            if not self._items:  # what came before the bell was silenced is there by now
                self._rung.wait()

    def take(self) -> object | None:
        """Take what stands first, None if nothing does."""
        try:
            return self._items.popleft()
        except IndexError:
            return None
