"""The gates: pure rules from a run to findings, one file each, in the order in which a verdict reports them."""

from __future__ import annotations

from typing import Any, Final

from spangate._records import Gate
from spangate._verdict.levels import Policy
from spangate.gates.budget import Budget
from spangate.gates.cardinality import Cardinality
from spangate.gates.causality import Causality
from spangate.gates.completeness import Completeness
from spangate.gates.exits import Exits
from spangate.gates.fingerprints import Fingerprints
from spangate.gates.forest import Forest
from spangate.gates.halt import Halt
from spangate.gates.retries import Retries
from spangate.gates.timing import Timing
from spangate.gates.worktree import Worktree

__all__ = [
    "GATES",
    "Budget",
    "Cardinality",
    "Causality",
    "Completeness",
    "Exits",
    "Fingerprints",
    "Forest",
    "Halt",
    "Policy",
    "Retries",
    "Timing",
    "Worktree",
    "default_gates",
    "strict_gates",
]

GATES: Final[tuple[type[Any], ...]] = (
    Completeness,
    Forest,
    Budget,
    Exits,
    Fingerprints,
    Halt,
    Causality,
    Retries,
    Worktree,
    Cardinality,
    Timing,
)
"""Every gate that can be configured. ``Encoding`` is not among them: it is asked of every run."""


def default_gates() -> tuple[Gate, ...]:
    """Return the gates that judge a run where nobody says otherwise: what is surely broken fails, the rest warns.

    ``Worktree`` is not among them: it needs to be told a repository.

    To change one, put another of its kind in its place; to change levels, add a :class:`Policy`::

        gates = [*default_gates(), Policy(levels={"completeness.recovered_error": "fail"})]
    """
    return tuple(gate() for gate in GATES if gate is not Worktree)


def strict_gates() -> tuple[Gate, ...]:
    """Return the default gates under a policy by which every warning fails and every gate must be evaluable.

    What is off by default stays off, but for token counts on the root of a run of our own, which belong on its calls.
    """
    return (*default_gates(), Policy(strict=True))
