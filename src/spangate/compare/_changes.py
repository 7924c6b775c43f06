"""What changed between two runs, as data: each change by itself, and all of them with the answer that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spangate._records import Span
from spangate._run import Run
from spangate.compare._generations import Comparison
from spangate.compare._rules import Allowance, Kind, Rules

Aligned: TypeAlias = tuple["Span | None", "Span | None"]
"""A call of a tool in one run and the one that stands for it in the other; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change from run A to run B.

    Attributes:
        kind: Its class. A ``drift`` is the same call with other arguments; an edge says what stands below what.
        name: The tool, the edge as ``parent > child``, or the log record, without ids that differ by themselves.
        agent: The agent that made the call, by the name of its span; empty where there is none, and of edges and logs.
        a: The span in A; of an edge, that of one of its children. None where there is none.
        b: The span in B.
        keys: Of a drift, the top-level arguments that differ, sorted; empty where that cannot be told.
        digest_a: The digest of the call's arguments in A, 16 hex digits; None where it has none.
        digest_b: The same in B.
        count: For how many it stands.
        unknown: Why it cannot be told whether anything has changed: arguments that were not recorded are not equal.
        allowance: The entry that allows it; None where none does.
        varies: Whether the baselines differ among themselves in the same way.
    """

    kind: Kind
    name: str
    agent: str = ""
    a: Span | None = None
    b: Span | None = None
    keys: tuple[str, ...] = ()
    digest_a: str | None = None
    digest_b: str | None = None
    count: int = 1
    unknown: str = ""
    allowance: Allowance | None = None
    varies: bool = False

    @property
    def is_accepted(self) -> bool:
        """True if an entry allows it, or the baselines vary in the same way."""
        return self.allowance is not None or self.varies


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """All that changed between two runs.

    Attributes:
        a: The run before.
        b: The run after.
        rules: By which they were compared.
        comparison: Whether the two may be compared, and why not.
        closed: Whether both runs are complete and each is one tree.
        refusal: Why there is no diff; None where there is one.
        changes: Calls first, then edges, then log records; unallowed and allowed ones.
        alignment: Every call of a tool in either run, with its counterpart, in the causal order of each agent.
        roles: How many spans of each role A and B have.
        recounted: Edges that both have another number of times: no change, since frameworks vary so by themselves.
        faults: What was captured wrong and is therefore not compared, in words.
        notes: What else is worth knowing, in words.
        unused: Entries that allowed nothing because nothing was there to be allowed.
        expired: Entries that allowed nothing because their day is over.
    """

    a: Run
    b: Run
    comparison: Comparison
    rules: Rules = field(default_factory=Rules)
    closed: bool = True
    refusal: str | None = None
    changes: tuple[Change, ...] = ()
    alignment: Sequence[Aligned] = ()
    roles: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recounted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unused: tuple[Allowance, ...] = ()
    expired: tuple[Allowance, ...] = ()

    @property
    def bounded(self) -> bool:
        """True if the runs could be compared, and every change is allowed or known to vary."""
        return self.refusal is None and not self.unaccepted

    @property
    def unaccepted(self) -> tuple[Change, ...]:
        """The changes that nothing allows."""
        return tuple(change for change in self.changes if not change.is_accepted)
