"""Taking turns: a thread with much to do lets the others in before they have waited long.

The interpreter changes threads every 5 ms by itself; a thread that is always busy waits as long for its turn each time.
Nobody gets a turn while the garbage collector runs, and a full collection walks through every span that is held.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

SLICE_S = 0.001
"""How long a thread works without a rest."""
REST_S = 0.001
"""How long it rests: long enough for another one to wake up and take over, on a busy machine too."""
_YOUNG, _GROWN = 0, 1
_MOST_YOUNG: Final = 2
"""So many collections of the youngest objects are followed by one of those that outlived them."""


class Pace:
    """Rests when it is called, if the last rest is long enough ago and ``is_hurried`` does not say otherwise."""

    def __init__(self, is_hurried: Callable[[], bool]) -> None:
        self._is_hurried = is_hurried
        self._since = time.perf_counter()

    def __call__(self) -> None:
        """Collect what is young, if that is due soon, and rest, if it is time to."""
        young, grown, _ = gc.get_count()
        if young > gc.get_threshold()[0] >> 1:
            _collect(grown)
        if time.perf_counter() - self._since >= SLICE_S:
            if not self._is_hurried():
                time.sleep(REST_S)
            self._since = time.perf_counter()


def _collect(grown: int) -> None:
    """Do the collector's next step early, while it is small.

    By itself it would wait until ten times as much has gathered, and then perhaps begin a full collection, in the midst
    of a run that is about to leave. A program that has turned it off wants no steps at all.
    """
    if gc.isenabled() and gc.get_threshold()[0]:
        gc.collect(_GROWN if grown > _MOST_YOUNG else _YOUNG)
