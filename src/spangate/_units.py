"""Numbers as a person reads them."""

from __future__ import annotations

from typing import Final

_STEPS: Final = ((86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"))


def duration(ns: int) -> str:
    """Write nanoseconds in the unit that fits: ``3 ms``, ``1.2 s``, ``2.5 min``."""
    for size, unit in _STEPS:
        if abs(ns) >= size:
            return f"{ns / size:.1f}".removesuffix(".0") + f" {unit}"
    if abs(ns) >= 1_000_000:  # noqa: PLR2004  a millisecond
        return f"{ns / 1_000_000:.0f} ms"
    return f"{ns / 1000:.0f} µs" if ns else "0 s"
