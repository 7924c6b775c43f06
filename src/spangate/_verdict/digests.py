"""What a policy and a fault are known by: 12 hex digits each, the same in every process and every night."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final

from spangate._canonical import canonical_hash, canonical_json, text_hash
from spangate._names import gate_name, stable_name
from spangate._records import Finding, Gate
from spangate._verdict.levels import Policy

DIGITS: Final = 12


def cluster(failures: Iterable[Finding]) -> str:
    """Name a fault: equal whenever the same codes fail at spans of the same role and name.

    Hashed are the distinct ``code:role:name`` of the failing findings, the name without ids and digits. A finding
    about no span in particular counts with its code.
    """
    return problem_hash({_problem(finding) for finding in failures})


def problem_hash(problems: Set[str]) -> str:
    """Hash distinct problems, whatever their order."""
    return text_hash("|".join(sorted(problems)), DIGITS)


def policy_digest(gates: Iterable[Gate], policy: Policy) -> str:
    """Name what is in force: the gates with their settings, the level of each code, and the required gates.

    The order of the gates does not matter, nor does the place on disk that one looks at. A setting that is neither data
    nor a dataclass counts by its type.
    """
    proper = tuple(gates)
    try:
        return _remembered_digest(proper, policy)
    except TypeError:  # a gate whose settings have no hash
        return _digest(proper, policy)


def _digest(gates: tuple[Gate, ...], policy: Policy) -> str:
    in_force = {
        "gates": sorted(canonical_json(_described(gate)) for gate in gates),
        "levels": policy.in_force(),
        "required": policy.required(map(gate_name, gates)),
    }
    return canonical_hash(in_force, DIGITS)


_remembered_digest = lru_cache(maxsize=16)(_digest)  # it would be half the cost of judging a run of two spans


def _problem(finding: Finding) -> str:
    if finding.span is None:
        return finding.code
    return f"{finding.code}:{finding.span.role}:{stable_name(finding.span.name)}"


def _described(gate: Any) -> list[Any]:
    return [gate_name(gate), _place(gate), _plain(gate)]


def _plain(value: Any) -> Any:
    """Bring a setting into a form that reads the same in every process: no addresses, no order of sets."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and value % 1 == 0:
        return int(value)  # equal settings have one digest: 1, 1.0 and True
    if isinstance(value, (float, bytes, PurePath)):
        return repr(value)
    if dataclasses.is_dataclass(value):
        fields = (field for field in dataclasses.fields(value) if not field.metadata.get("is_place"))
        return {field.name: _plain(getattr(value, field.name)) for field in fields}
    return _plain_collection(value) if isinstance(value, Collection) else _place(value)


def _plain_collection(value: Collection[Any]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    items = [_plain(item) for item in value]
    return sorted(map(canonical_json, items)) if isinstance(value, Set) else items


def _place(value: Any) -> str:
    """Return where a function, or the class of an object, is defined."""
    defined = value if hasattr(value, "__qualname__") else type(value)
    return f"{defined.__module__}.{defined.__qualname__}"
