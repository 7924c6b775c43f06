"""What differs between a run and the one that it is compared with, for the page: what came, what went, what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One change. ``sign`` stands before it, ``row`` is its row in the tree, ``allowed`` why it may be."""

    kind: str
    sign: str
    words: str
    name: str
    row: int | None = None
    more: str = ""
    allowed: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Changes of one kind; ``more`` says how many are not listed."""

    heading: str
    count: str
    changes: Sequence[ChangeLine]
    more: str = ""


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """What differs. ``refusal`` says why the runs cannot be compared, if so."""

    against: str
    words: str
    parts: Sequence[Part] = ()
    refusal: str = ""
    notes: Sequence[str] = ()
