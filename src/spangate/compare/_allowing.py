"""Which changes are allowed by which entries of an allow file, and which entries allow nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run
from spangate.compare._changes import Change
from spangate.compare._naming import Names
from spangate.compare._rules import Allowance, Kind
from spangate.compare._tree import edge_name


class Allowances:
    """Entries of an allow file, and which of them were of use.

    Args:
        entries: In the order of the file; of several that allow a change, the first is named.
        today: The day on which they are asked.
    """

    def __init__(self, entries: Iterable[Allowance], today: date) -> None:
        self._entries = [*entries]
        self._today = today
        self._used: set[int] = set()
        self._known: dict[tuple[Kind, str], list[int]] = {}

    def of(self, change: Change) -> Change:
        """Return a change with the entry that allows it. A drift is allowed if each of its keys is."""
        valid = self._valid(change.kind, change.name)
        if not valid:
            return change
        by_key = [self._first(valid, key) for key in change.keys or (None,)]
        if None in by_key:
            return change
        return replace(change, allowance=by_key[0])

    def _valid(self, kind: Kind, name: str) -> list[int]:
        """Return the numbers of the entries about this change that have not expired."""
        place = (kind, name)
        if place not in self._known:
            self._known[place] = [
                number
                for number, entry in enumerate(self._entries)
                if entry.names(kind, name) and not entry.has_expired(self._today)
            ]
        return self._known[place]

    def _first(self, numbers: Iterable[int], key: str | None) -> Allowance | None:
        fitting = [number for number in numbers if self._entries[number].key in (None, key)]
        self._used.update(fitting)
        return self._entries[fitting[0]] if fitting else None

    def unused(self) -> tuple[Allowance, ...]:
        """Return the entries that no change has needed so far, without those that have expired."""
        numbered = enumerate(self._entries)
        return tuple(one for number, one in numbered if number not in self._used and not one.has_expired(self._today))

    def expired(self) -> tuple[Allowance, ...]:
        """Return the entries whose day is over."""
        return tuple(entry for entry in self._entries if entry.has_expired(self._today))


def with_calls(edges: Sequence[Change], calls: Iterable[Change], runs: tuple[Run, Run], names: Names) -> list[Change]:
    """Return the changed edges, those accepted with the calls that they come with.

    An edge is new because of a new call if each of its children is the span of such a call, or below one: then what
    accepts these calls accepts the edge.
    """
    calls = [*calls]
    found = {
        **_owners(runs[0], [(one.a, one) for one in calls if one.kind == "dropped"], edges, "edge_dropped", names),
        **_owners(runs[1], [(one.b, one) for one in calls if one.kind == "added"], edges, "edge_added", names),
    }
    return [_accepted_with(edge, found.get((edge.kind, edge.name), [None])) for edge in edges]


def _owners(
    run: Run, calls: Iterable[tuple[Span | None, Change]], edges: Iterable[Change], kind: Kind, names: Names
) -> dict[tuple[Kind, str], list[Change | None]]:
    """Return for each changed edge of a kind the calls that its children belong to."""
    changed = {span: change for span, change in calls if span is not None}
    wanted = {edge.name for edge in edges if edge.kind == kind}
    found: dict[tuple[Kind, str], list[Change | None]] = {}
    if not changed or not wanted:
        return found
    above = nearest(run, changed.__contains__)
    for span in run.spans:
        parent = run.parent_of(span)
        if parent is None:
            continue
        name = edge_name((names.of_span(parent), names.of_span(span)))
        if name in wanted:
            owner = span if span in changed else above(span)
            found.setdefault((kind, name), []).append(None if owner is None else changed[owner])
    return found


def _accepted_with(edge: Change, owners: Sequence[Change | None]) -> Change:
    if edge.is_accepted or not all(owner is not None and owner.is_accepted for owner in owners):
        return edge
    allowance = next((owner.allowance for owner in owners if owner is not None and owner.allowance is not None), None)
    return replace(edge, allowance=allowance, varies=allowance is None)
