"""Numbers and names as a person reads them, on one line and whatever they hold."""

from __future__ import annotations

from typing import Final

_STEPS: Final = ((86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"))
MAX_SHOWN: Final = 80


def duration(ns: int) -> str:
    """Write nanoseconds in the unit that fits: ``3 ms``, ``1.2 s``, ``2.5 min``."""
    for size, unit in _STEPS:
        if abs(ns) >= size:
            return f"{ns / size:.1f}".removesuffix(".0") + f" {unit}"
    if abs(ns) >= 1_000_000:  # noqa: PLR2004  a millisecond
        return f"{ns / 1_000_000:.0f} ms"
    return f"{ns / 1000:.0f} µs" if ns else "0 s"


def shown(text: str, limit: int = MAX_SHOWN) -> str:
    r"""Write a name or a detail on one line: cut to ``limit`` characters, escaped what no terminal should get.

    Control characters, lone surrogates and marks that turn the direction of writing become escapes such as ``\x1b``.
    """
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    if cut.isprintable():
        return cut
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in cut)


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 span``, ``1,204 spans``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
