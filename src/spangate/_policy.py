"""From a policy file to gates: TOML, one table a gate, and the levels of codes.

::

    require = ["budget"]                 # gates that must be evaluable
    strict = false                       # true: every warning fails, every gate is required
    levels = { "forest.late_child" = "warn", "encoding.lone_surrogate" = "fail" }

    [budget]                             # the settings of a gate, by the names that they have in Python
    max_input_tokens = 100_000
    levels = { usage_missing = "fail" }  # codes of this gate

A gate that has no table keeps its defaults.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from spangate._codes import DEFAULT_LEVELS
from spangate._errors import PolicyError
from spangate._names import gate_name
from spangate._policy_types import did_you_mean, fit, quoted
from spangate._records import Gate, Level
from spangate._verdict.levels import SETTABLE, Policy
from spangate.gates import GATES, default_gates

_OWN_KEYS = {"levels": dict, "require": tuple[str, ...], "strict": bool}


def load_policy(path: str | PathLike[str]) -> tuple[Gate, ...]:
    """Read a policy file.

    Args:
        path: The file; TOML in UTF-8.

    Returns:
        The gates of :func:`spangate.gates.default_gates`, set up as the file says, and the policy that goes with them.

    Raises:
        PolicyError: The file cannot be read, is not TOML, or says something that does not exist. The error names the
            file, the key, and what is nearest to it or what is allowed there.
    """
    return parse_policy(read_text(path), fspath(path))


def read_text(path: str | PathLike[str]) -> str:
    """Return what stands in a file that somebody wrote; errors are those of a policy."""
    source = fspath(path)
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PolicyError(f"cannot be read: {error.strerror or error}", source=source) from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"is not UTF-8: {error.reason} at byte {error.start}", source=source) from error


def parse_policy(text: str, source: str) -> tuple[Gate, ...]:
    """Make gates of the text of a policy file; ``source`` names it in errors. Raises as :func:`load_policy` does."""
    return _Reader(source).gates(parse_toml(text, source))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Return what a file in TOML says; ``source`` names it in errors, which are those of a policy."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            what = "reading it needs tomli on Python 3.10: pip install 'spangate[cli]'"
            raise PolicyError(what, source=source) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"is not TOML: {error}", source=source) from error


class _Reader:
    """Reads one file; it knows the name of the file for the errors."""

    def __init__(self, source: str) -> None:
        self._source = source

    def gates(self, table: Mapping[str, Any]) -> tuple[Gate, ...]:
        kinds = {kind.__name__.lower(): kind for kind in GATES}
        for key in table:
            if key not in kinds and key not in _OWN_KEYS:
                self._refuse(key, f"no such gate or key{did_you_mean(key, [*kinds, *_OWN_KEYS])}")
        own = {key: self._fit(key, table[key], hint) for key, hint in _OWN_KEYS.items() if key in table}
        for name in own.get("require", ()):
            if name not in kinds:
                self._refuse("require", f"no gate {quoted(name)}{did_you_mean(name, kinds)}")
        levels = dict(self._levels("levels", own.get("levels", {})))
        gates = {gate_name(gate): gate for gate in default_gates()}
        for name in (name for name in kinds if name in table):
            settings = self._fit(name, table[name], dict)
            own_levels = self._fit(f"{name}.levels", settings.pop("levels", {}), dict)
            levels.update(self._levels(f"{name}.levels", own_levels, name))
            gates[name] = self._gate(name, kinds[name], settings)
        policy = Policy(levels=levels, require=own.get("require", ()), strict=own.get("strict", False))
        return (*(gates[name] for name in kinds if name in gates), policy)

    def _gate(self, name: str, kind: type[Any], settings: Mapping[str, Any]) -> Gate:
        hints = _settings(kind)
        for key in settings:
            if key not in hints:
                self._refuse(f"{name}.{key}", f"no such setting of {name}{_misplaced(name, key, hints)}")
        wanting = [key for key in _needed(kind) if key not in settings]
        if wanting:
            self._refuse(name, f"needs {', '.join(wanting)}")
        values = {key: self._fit(f"{name}.{key}", value, hints[key]) for key, value in settings.items()}
        try:
            gate: Gate = kind(**values)
        except (TypeError, ValueError) as error:
            self._refuse(name, str(error))
        return gate

    def _levels(self, key: str, table: Mapping[str, Any], gate: str = "") -> Iterator[tuple[str, Level]]:
        """Yield code and level. In a gate's own table the gate may be left out of the code."""
        for written, level in _flat(table):
            code = f"{gate}.{written}" if gate and "." not in written else written
            codes = [known for known in DEFAULT_LEVELS if known.startswith(f"{gate}." if gate else "")]
            if code not in codes:
                self._refuse(key, f"no code {quoted(code)}{did_you_mean(code, codes)}")
            if level not in SETTABLE:
                self._refuse(key, f"{code} is {quoted(level)}: a level is {' or '.join(map(quoted, SETTABLE))}")
            yield code, level

    def _fit(self, key: str, value: Any, hint: Any) -> Any:
        try:
            return fit(value, hint)
        except ValueError as error:
            self._refuse(key, f"is {quoted(value)}; it should be {error}")

    def _refuse(self, key: str, what: str) -> NoReturn:
        raise PolicyError(what, source=self._source, key=key)


def _settings(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a gate's settings by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _needed(kind: type[Any]) -> list[str]:
    """Return the settings that a gate cannot do without."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return [field.name for field in fields if field.default is field.default_factory is missing]


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield codes and levels, whether a code is quoted or its dot makes a table of it."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", level) for inner, level in value.items())
        else:
            yield key, value


def _misplaced(gate: str, key: str, settings: Iterable[str]) -> str:
    """Say where a key belongs that is right in another place, else what is nearest."""
    if key in _OWN_KEYS:
        return f"; {key} is a key of the whole file and stands above the first table"
    if f"{gate}.{key}" in DEFAULT_LEVELS:
        return f"; it is a code: levels = {{ {key} = ... }}"
    return did_you_mean(key, [*settings, "levels"])
