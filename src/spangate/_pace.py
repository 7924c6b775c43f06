"""Taking turns: a thread with much to do lets the others in before they have waited long.

The interpreter changes threads every 5 ms by itself; a thread that is always busy waits as long for its turn each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLICE_S = 0.001
"""How long a thread works without a rest."""
REST_S = 0.001
"""How long it rests: long enough for another one to wake up and take over, on a busy machine too."""


class Pace:
    """Rests when it is called, if the last rest is long enough ago and ``is_hurried`` does not say otherwise."""

    def __init__(self, is_hurried: Callable[[], bool]) -> None:
        self._is_hurried = is_hurried
        self._since = time.perf_counter()

    def __call__(self) -> None:
        """Rest, if it is time to."""
        if time.perf_counter() - self._since >= SLICE_S:
            if not self._is_hurried():
                time.sleep(REST_S)
            self._since = time.perf_counter()
