"""What varies between runs that nobody has changed anything about: the band in which a change says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from spangate.compare._calls import compare_calls
from spangate.compare._changes import Change
from spangate.compare._step import Step
from spangate.compare._steps import Reader
from spangate.compare._tree import Tree, edge_name

LEAST: Final = 3
"""So many baselines make a band: of two that differ nobody can tell which is the odd one."""
_AS_A_WHOLE: Final = ("",)
"""Stands for the keys of arguments that are no object."""

Place: TypeAlias = tuple[str, str]
"""The agent that makes a call, and the name of the tool."""


@dataclass(frozen=True, slots=True)
class Portrait:
    """A run as the diff sees it: its steps and its tree."""

    steps: Step
    tree: Tree

    def calls(self) -> Counter[Place]:
        """Count the calls of each tool by each agent."""
        found: Counter[Place] = Counter()
        todo = [self.steps]
        while todo:
            step = todo.pop()
            if step.kind == "tool":
                found[step.agent, step.name] += 1
            todo += step.inside
        return found


class Band:
    """What differs among baselines, and how often they make each call and log each record.

    Args:
        baselines: Three or more.
        reader: By which they were read.
    """

    def __init__(self, baselines: Sequence[Portrait], reader: Reader) -> None:
        first = baselines[0]
        self._calls = [portrait.calls() for portrait in baselines]
        self._records = [portrait.tree.records for portrait in baselines]
        self._edges = _not_in_all(portrait.tree.edges for portrait in baselines)
        self._drifted: dict[Place, set[str]] = {}
        self._counts: set[Place] = set()
        self._reordered: set[Place] = set()
        for other in baselines[1:]:
            for change in compare_calls(first.steps, other.steps, reader).changes:
                self._take_in(change)

    def _take_in(self, change: Change) -> None:
        place = (change.agent, change.name)
        if change.kind == "reordered":
            self._reordered.add(place)
        elif change.kind != "drift":
            self._counts.add(place)
        elif not change.unknown:
            self._drifted.setdefault(place, set()).update(change.keys or _AS_A_WHOLE)

    def covers(self, change: Change, after: Portrait, calls: Counter[Place]) -> bool:
        """Say whether a change is one that the baselines show among themselves.

        Args:
            change: From the run before to the run ``after``.
            after: The latter.
            calls: Its calls, counted.
        """
        place = (change.agent, change.name)
        if change.unknown:
            return False
        match change.kind:
            case "added" | "dropped":
                return place in self._counts and _is_within(calls[place], [one[place] for one in self._calls])
            case "reordered":
                return place in self._reordered
            case "drift":
                return self._drifted.get(place, set()).issuperset(change.keys or _AS_A_WHOLE)
            case "edge_added" | "edge_dropped":
                return change.name in self._edges
        name = change.name
        return _is_within(after.tree.records[name], [one[name] for one in self._records])


def _is_within(number: int, known: Sequence[int]) -> bool:
    return min(known) <= number <= max(known)


def _not_in_all(trees: Iterable[Counter[tuple[str, str]]]) -> set[str]:
    sets = [{*map(edge_name, edges)} for edges in trees]
    return set().union(*sets) - sets[0].intersection(*sets)
