"""How much may be dealt with at once: bytes of requests, as they came and unpacked, until they are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Taken: TypeAlias = Callable[[int], bool]
"""Takes so many bytes more for a request. False if there is no room for them."""


class Room:
    """Has room for ``most`` bytes over all requests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0

    @contextmanager
    def taken(self) -> Iterator[Taken]:
        """Have room taken for one request, until the end of the block."""
        mine = 0

        def take(size: int) -> bool:
            nonlocal mine
            mine += size
            self._used += size
            return self._used <= self._most

        try:
            yield take
        finally:
            self._used -= mine
