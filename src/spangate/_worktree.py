"""Looks at one working tree, one after the other, in a thread of its own: git may take its time, and nobody waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path, PurePath

from spangate._git import GitError, Repository, Snapshot, open_repository, take
from spangate._telemetry import logger

_LIMIT_S = 120.0
"""How long a look is waited for; git itself is given up before."""
_IN_A_ROW = 8
"""After so many looks one upon the other each is followed by a rest of its length."""
_MAX_REST_S = 1.0


class Look:
    """One look at the tree, asked for and perhaps not taken yet. ``error`` is why it could not be taken.

    ``begun`` and ``done`` are moments of the clock that only goes forward, in seconds; ``done_ns`` is the end in
    nanoseconds since the epoch.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.error = "the working tree was not looked at in time"
        self.begun = self.done = float("inf")
        self.done_ns = 0
        self._is_over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether the look has been taken, or could not be."""
        return self._is_over.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for it. False if that takes too long."""
        return self._is_over.wait(timeout_s)

    def end(self) -> None:
        """Let go of those who wait."""
        self.done, self.done_ns = time.monotonic(), time.time_ns()
        self._is_over.set()


class Looker:
    """Takes looks at the tree that ``place`` is in; whoever asks before one has begun shares it.

    ``told`` is called with each look when it is over, before those who wait for it go on. The thread ends when nobody
    asks any more.
    """

    def __init__(self, place: str | PurePath, *, with_ignored: bool, told: Callable[[Look], None]) -> None:
        self._place = Path(place).absolute()  # the program may go elsewhere
        self._with_ignored = with_ignored
        self._told = told
        self._complaints: set[str] = set()
        self.repository: Repository | None = None
        self.reset()

    def reset(self) -> None:
        """Have nothing asked for: what a forked child starts with."""
        self._lock = threading.RLock()  # a signal handler may ask where this thread asks
        self._chores: deque[Callable[[], None]] = deque()
        self._asked: Look | None = None
        self._is_at_work = False
        self.latest: Look | None = None

    def ask(self) -> Look:
        """Have a look taken that begins after this call."""
        with self._lock:
            look = self._asked
            if look is None:
                look = self._asked = Look()
        self._start()
        return look

    def do(self, chore: Callable[[], None]) -> None:
        """Have something done before the next look."""
        self._chores.append(chore)
        self._start()

    def _start(self) -> None:
        with self._lock:
            if self._is_at_work:
                return
            self._is_at_work = True
        try:
            threading.Thread(target=self._work, name="spangate-worktree", daemon=True).start()
        except RuntimeError:  # no thread can be started: the look is taken by whoever waits for it
            self._is_at_work = False

    def wait(self, look: Look, timeout_s: float = _LIMIT_S) -> None:
        """Wait for a look, at most so long; where there is no thread for it, take it."""
        with self._lock:
            is_mine = look is self._asked and not self._is_at_work
            if is_mine:
                self._asked = None
        if is_mine:
            self._do_chores()
            self._take(look)
        else:
            look.wait(timeout_s)

    def _work(self) -> None:
        for served in range(1 << 62):
            self._do_chores()
            with self._lock:
                look, self._asked = self._asked, None
                if look is None and self._chores:
                    continue
                if look is None:
                    self._is_at_work = False
                    return
            self._take(look)
            if served >= _IN_A_ROW:
                time.sleep(min(look.done - look.begun, _MAX_REST_S))

    def _do_chores(self) -> None:
        try:
            while self._chores:
                self._chores.popleft()()
        except Exception:  # noqa: BLE001  the next look must be taken
            logger.exception("a file that a tool wrote could not be hashed")

    def _take(self, look: Look) -> None:
        look.begun = time.monotonic()
        try:
            if self.repository is None:
                self.repository = open_repository(self._place)
            since = None if self.latest is None else self.latest.snapshot
            look.snapshot = take(self.repository, with_ignored=self._with_ignored, since=since)
        except GitError as error:
            look.error = str(error)
            self._complain(look.error)
        except Exception:  # noqa: BLE001  whoever waits must go on
            look.error = "the working tree could not be looked at, which is a defect of spangate"
            logger.exception("%s", look.error)
        finally:
            self._told(look)
            self.latest = look
            look.end()

    def _complain(self, what: str) -> None:
        if what not in self._complaints:  # every run would say the same
            self._complaints.add(what)
            logger.warning("the worktree gate cannot be evaluated: %s", what)
