"""Which level a finding has in force: what the policy says, else the finding itself, else the table of the codes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spangate._codes import DEFAULT_LEVELS, STRICT_ONLY
from spangate._names import gate_name
from spangate._records import Finding, Gate, Level
from spangate._run import Run

SETTABLE: Final = ("fail", "warn", "off")
"""The levels that a policy may set. ``not_evaluable`` is not one of them: evidence that is absent stays absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a team has decided about findings, as one more entry among the gates; it finds nothing itself.

    It stands in the same sequence as the gates, so that the one argument ``gates`` carries the whole policy and single
    gates can be swapped without losing it. Of several policies in a sequence the later wins, code by code.

    Attributes:
        levels: Level by code; wins over the finding's own level and over the default of the code.
        require: Names of gates that must be evaluable; one that is not fails the run with ``gate.not_evaluable``.
        strict: Every warning is a failure and every gate of the sequence is required; ``levels`` still wins.

    Raises:
        ValueError: a level that is none of ``fail``, ``warn`` and ``off``.
        TypeError: ``require`` is one text instead of names.
    """

    levels: Mapping[str, Level] = field(default_factory=dict, hash=False)
    require: Collection[str] = field(default=(), hash=False)
    strict: bool = False

    def __post_init__(self) -> None:
        for code, level in self.levels.items():
            if level not in SETTABLE:
                raise ValueError(f"level of {code!r} is {level!r}: it may be {', '.join(SETTABLE)}")
        if isinstance(self.require, str):
            raise TypeError(f"require wants a collection of gate names, as ({self.require!r},)")

    def __call__(self, _run: Run) -> Iterator[Finding]:
        """Find nothing: a policy only weighs what the gates find."""
        return iter(())

    def level(self, code: str, own: Level | None) -> Level:
        """Return the level in force of a finding with this code and this level of its own.

        A code that nobody has given a level fails: a user's own gate means what it says. Absent evidence stays
        ``not_evaluable`` whatever the level of its rule, unless the rule is off.
        """
        decided = self.levels.get(code)
        if own == "not_evaluable":
            return "off" if decided == "off" else "not_evaluable"
        if decided is not None:
            return decided
        level = own or DEFAULT_LEVELS.get(code, "fail")
        return "fail" if self.strict and (level == "warn" or code in STRICT_ONLY) else level

    def required(self, configured: Iterable[str]) -> list[str]:
        """Return the names of the required gates: those of ``require``, in strict every one that is configured."""
        return sorted({*self.require, *(configured if self.strict else ())})

    def in_force(self) -> dict[str, Level]:
        """Return the level of every code that is known here."""
        return {code: self.level(code, None) for code in (*DEFAULT_LEVELS, *self.levels)}


def split(gates: Iterable[Gate]) -> tuple[Policy, list[Gate]]:
    """Take a sequence of gates apart into the one policy that holds and the gates proper.

    Of two gates with one name the later is asked, in the place of the first: so ``[*default_gates(), Budget(…)]`` sets
    the budget up and does not ask two.
    """
    policies: list[Policy] = []
    proper: dict[str, Gate] = {}
    for gate in gates:
        if isinstance(gate, Policy):
            policies.append(gate)
        else:
            proper[gate_name(gate)] = gate
    levels: dict[str, Any] = {}
    for policy in policies:
        levels.update(policy.levels)
    require = {name for policy in policies for name in policy.require}
    return Policy(levels=levels, require=require, strict=any(policy.strict for policy in policies)), list(
        proper.values()
    )
