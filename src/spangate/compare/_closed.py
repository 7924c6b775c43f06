"""Whether a run is closed, so that it may be compared at all: complete, and one tree."""

from __future__ import annotations

from itertools import chain
from typing import Final

from spangate._records import Finding
from spangate._run import Run
from spangate._units import shown
from spangate._verdict.levels import Policy
from spangate.gates.completeness import Completeness
from spangate.gates.forest import Forest

_GATES: Final = (Completeness(), Forest())
_NAMES: Final = frozenset({"completeness", "forest", "buffer"})
_DEFAULTS: Final = Policy()
_DETAIL: Final = 200


def why_not_closed(run: Run) -> str | None:
    """Say why a run is not closed: the first failure of completeness or forest, and how many more there are."""
    notes = (note for note in run.notes if note.gate in _NAMES)
    failures = [one for one in chain(notes, *(gate(run) for gate in _GATES)) if _fails(one)]
    if not failures:
        return None
    first = failures[0]
    where = f" at {shown(first.span.name)}" if first.span else ""
    more = f", and {len(failures) - 1:,} more" if len(failures) > 1 else ""
    return f"{first.code}{where}: {shown(first.detail, _DETAIL)}{more}"


def _fails(finding: Finding) -> bool:
    return _DEFAULTS.level(finding.code, finding.level) == "fail"
