"""The file that says how long runs may take: what was measured of healthy ones, with a tolerance.

::

    tolerance = 0.25                     # so much more than what was measured is still fine

    [runs."invoke_agent coder"]          # by the name of the root; * and ? stand for what differs
    untraced_fraction = 0.12
    exclusive_ms = { generation = 5200.0, tool = 310.5 }
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from spangate._errors import PolicyError
from spangate._policy import parse_toml
from spangate._policy_types import fit, quoted
from spangate._timing import Times

TOLERANCE: Final = 0.25
SLACK_FRACTION: Final = 0.02
SLACK_MS: Final = 5.0
"""What is always added: a share of the wall clock, and what a busy machine takes for nothing."""
_MS: Final = 1e6


@dataclass
class Entry:
    """What runs of one name may take at most: the untraced part of the wall clock, and milliseconds by role."""

    untraced_fraction: float | None = None
    exclusive_ms: dict[str, float] = field(default_factory=dict)
    is_used: bool = False

    def take_in(self, account: Times) -> None:
        """Raise it to what a healthy run took."""
        self.untraced_fraction = max(self.untraced_fraction or 0.0, account.untraced_fraction)
        for role, taken in account.by_role.items():
            self.exclusive_ms[role] = max(self.exclusive_ms.get(role, 0.0), taken / _MS)

    def over(self, account: Times, tolerance: float) -> Iterator[str]:
        """Yield what a run takes more than this, with the tolerance."""
        if self.untraced_fraction is not None:
            most = self.untraced_fraction * (1 + tolerance) + SLACK_FRACTION
            if account.untraced_fraction > most:
                measured = f"{account.untraced_fraction:.1%} untraced"
                yield f"{measured}, more than {most:.1%} (baseline {self.untraced_fraction:.1%})"
        for role, baseline in self.exclusive_ms.items():
            most, taken = baseline * (1 + tolerance) + SLACK_MS, account.by_role.get(role, 0) / _MS
            if taken > most:
                yield f"{role} takes {taken:,.1f} ms of its own, more than {most:,.1f} (baseline {baseline:,.1f})"


class Baseline:
    """The entries of a file by the names of roots.

    Args:
        entries: In the order of the file: of several that match, the first counts; an exact name before all.
        tolerance: So much more than what was measured is fine, as a fraction of it.
    """

    def __init__(self, entries: Mapping[str, Entry], tolerance: float = TOLERANCE) -> None:
        self.entries = dict(entries)
        self.tolerance = tolerance

    def over(self, name: str, account: Times) -> list[str] | None:
        """Return what a run takes too much, None if the file has no entry for its name."""
        entry = self.entries.get(name)
        if entry is None:
            entry = next((known for pattern, known in self.entries.items() if fnmatchcase(name, pattern)), None)
        if entry is None:
            return None
        entry.is_used = True
        return [account.blind] if account.blind else [*entry.over(account, self.tolerance)]

    def take_in(self, name: str, account: Times) -> None:
        """Note what a healthy run took."""
        if not account.blind:
            self.entries.setdefault(name, Entry()).take_in(account)

    def unused(self) -> list[str]:
        """Return the names that no run had."""
        return [name for name, entry in self.entries.items() if not entry.is_used]

    def text(self) -> str:
        """Return the file."""
        lines = ["# What healthy runs took. Written by: spangate check --update-timing-baseline", ""]
        lines.append(f"tolerance = {self.tolerance}")
        for name, entry in self.entries.items():
            own = ", ".join(f"{role} = {_up(taken, 1)}" for role, taken in entry.exclusive_ms.items())
            lines += ["", f"[runs.{json.dumps(name)}]", f"untraced_fraction = {_up(entry.untraced_fraction or 0.0, 4)}"]
            lines.append(f"exclusive_ms = {{ {own} }}")
        return "\n".join(lines) + "\n"


def load_baseline(path: str) -> Baseline:
    """Read a baseline.

    Raises:
        PolicyError: it cannot be read, or says something that does not exist; the error names file and key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"cannot be read: {error}", source=path) from error
    table = parse_toml(text, path)
    _check_keys(table, ("tolerance", "runs"), path, "")
    entries = {}
    for name, told in _fit(table.get("runs", {}), dict, path, "runs").items():
        key = f"runs.{quoted(name)}"
        _check_keys(_fit(told, dict, path, key), ("untraced_fraction", "exclusive_ms"), path, key)
        fraction = told.get("untraced_fraction")
        entries[name] = Entry(
            None if fraction is None else _fit(fraction, float, path, f"{key}.untraced_fraction"),
            dict(_fit(told.get("exclusive_ms", {}), Mapping[str, float], path, f"{key}.exclusive_ms")),
        )
    return Baseline(entries, _fit(table.get("tolerance", TOLERANCE), float, path, "tolerance"))


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...], path: str, key: str) -> None:
    for one in table:
        if one not in allowed:
            where = f"{key}.{one}" if key else one
            raise PolicyError(f"no such key; there are {', '.join(allowed)}", source=path, key=where)


def _fit(value: Any, hint: Any, path: str, key: str) -> Any:
    try:
        return fit(value, hint)
    except ValueError as error:
        raise PolicyError(f"is {quoted(value)}; it should be {error}", source=path, key=key) from None


def _up(value: float, digits: int) -> float:
    scale = float(10**digits)
    return math.ceil(value * scale) / scale
