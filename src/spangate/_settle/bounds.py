"""How much may be held, and for how long: measures what is held and names the trees that must go as they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spangate._adapter import held_bytes
from spangate._buffer import Buffer
from spangate._buffer.tree import SPAN_OVERHEAD, Tree
from spangate._paced import resting
from spangate._records import Trigger

SPARED = 2
"""How often a tree that is over is not weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of what is held.

    Attributes:
        idle_timeout_s: Seconds without a start or an end after which a tree is judged as it stands. None: never,
            since a person may take hours to approve a step.
        max_run_age_s: Seconds after which a tree is judged whatever happens in it. A day: the longest that an
            unattended run is let go on in practice, and short enough that a leak is seen the next morning.
        max_held_bytes: Bytes over all trees (attributes, events, and 2 KiB a span for the SDK's objects). 256 MiB
            hold some 40,000 spans with 4 KiB of content each. The process grows by up to 1.5 times as much then, and by
            three times as much at worst: spans with next to no content, while they are judged.
        max_run_spans: Spans of one tree. 125,000 is what the byte bound allows with next to no content.

    Raises:
        ValueError: a limit that is not positive.
    """

    idle_timeout_s: float | None = None
    max_run_age_s: float = 86_400.0
    max_held_bytes: int = 256 << 20
    max_run_spans: int = 125_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r}: a limit must be greater than zero")


class Scales:
    """Weighs what the buffer holds. Used by the worker alone.

    A tree that is over is spared twice, since it will be decided by then: most spans are never weighed.
    """

    def __init__(self, buffer: Buffer, bounds: Bounds) -> None:
        self._buffer = buffer
        self._bounds = bounds

    @property
    def max_age_s(self) -> float:
        """Seconds after which a run is settled as it stands."""
        return self._bounds.max_run_age_s

    def weigh(self) -> None:
        """Measure the spans that ended since the last call."""
        for tree in self._buffer.held():
            self._buffer.absorb(tree)
            if not tree.fresh:
                continue
            if _is_over(tree) and tree.spared < SPARED:
                tree.spared += 1
            else:
                fresh = resting(self._buffer.take_fresh(tree), self._buffer.rest)
                tree.weight += sum(SPAN_OVERHEAD + held_bytes(span) for span in fresh)

    def overdue(self, now: float) -> Iterator[tuple[Tree, Trigger]]:
        """Yield the trees that must go now, with the reason."""
        held = {tree: self._idle_s(tree, now) for tree in self._buffer.held()}
        bounds = self._bounds
        for tree, idle_s in held.items():
            if now - tree.opened_at >= bounds.max_run_age_s:
                yield tree, "age"
            elif sum(len(one.spans) + one.received_count for one in (tree, *tree.bound)) > bounds.max_run_spans:
                yield tree, "memory"
            elif bounds.idle_timeout_s is not None and idle_s >= bounds.idle_timeout_s:
                yield tree, "idle"
        left = {tree: idle_s for tree, idle_s in held.items() if self._buffer.is_held(tree)}
        excess = sum(map(_mass, left)) - bounds.max_held_bytes
        if excess > 0:
            yield from self._heaviest(left, excess)

    def _idle_s(self, tree: Tree, now: float) -> float:
        """Return how long nothing has started or ended in the tree, as far as the looks at it tell."""
        activity = tree.activity
        if activity != tree.seen:
            tree.seen, tree.seen_at = activity, now
        return now - tree.seen_at

    def _heaviest(self, held: Mapping[Tree, float], excess: int) -> Iterator[tuple[Tree, Trigger]]:
        """Yield idle trees before busy ones, and heavy ones before light ones, until the excess is gone."""
        for tree in sorted(held, key=lambda tree: (held[tree] == 0.0, -_mass(tree))):
            if excess <= 0:
                return
            excess -= _mass(tree)
            yield tree, "memory"


def _mass(tree: Tree) -> int:
    """Return what a tree takes up: ended spans as they were measured, what else it holds, and open spans, all alike."""
    return tree.weight + tree.received_weight + tree.record_weight + SPAN_OVERHEAD * tree.open


def _is_over(tree: Tree) -> bool:
    """Say whether a tree is about to be decided: its root has ended, nothing is open, and it waits for no other."""
    return tree.root_ended_at is not None and tree.open == 0 and tree.waits_for is None
