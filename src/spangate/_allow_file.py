"""From an allow file to what a diff is to accept, and by which rules it compares: TOML, one list a class of change.

::

    coarse = ["search"]                  # tools that are compared by name only
    added = ["retrieve"]                 # names, * standing for any text
    drift = [{ name = "plan", key = "query", reason = "new wording", expires = 2027-03-31 }]
    edge_added = [{ name = "invoke_agent cook > execute_tool *" }]

    [[dropped]]                          # the same, written longer
    name = "lookup"
    reason = "the cache answers now"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from os import PathLike, fspath
from typing import Any, Final, NoReturn, get_type_hints

from spangate._errors import PolicyError
from spangate._policy import parse_toml, read_text
from spangate._policy_types import did_you_mean, fit, quoted
from spangate.compare._rules import KINDS, Allowance, Kind, Rules

_RULES: Final = get_type_hints(Rules)
_ENTRY: Final = {"name": str, "key": str, "reason": str, "expires": date}


def load_allow_file(path: str | PathLike[str]) -> tuple[Rules, tuple[Allowance, ...]]:
    """Read an allow file.

    Args:
        path: The file; TOML in UTF-8.

    Returns:
        The rules that it sets, and what it allows, class by class. An empty file changes no rule and allows nothing.

    Raises:
        PolicyError: The file cannot be read, is not TOML, or says something that does not exist. The error names the
            file, the line if that can be told, the key, and what is nearest to it or what is allowed there.
    """
    return parse_allow_file(read_text(path), fspath(path))


def parse_allow_file(text: str, source: str) -> tuple[Rules, tuple[Allowance, ...]]:
    """Do the same with the text of a file; ``source`` names it in errors."""
    return _Reader(text, source).read(parse_toml(text, source))


class _Reader:
    """Reads one file; it knows its text and its name for the errors."""

    def __init__(self, text: str, source: str) -> None:
        self._lines = text.splitlines()
        self._source = source

    def read(self, table: Mapping[str, Any]) -> tuple[Rules, tuple[Allowance, ...]]:
        for key in table:
            if key not in _RULES and key not in KINDS:
                self._refuse(key, key, f"no such key{did_you_mean(key, [*KINDS, *_RULES])}")
        settings = {key: self._fit(key, key, table[key], hint) for key, hint in _RULES.items() if key in table}
        try:
            rules = Rules(**settings)
        except ValueError as error:
            self._refuse("normalise", "normalise", str(error))
        return rules, tuple(entry for kind in KINDS if kind in table for entry in self._entries(kind, table[kind]))

    def _entries(self, kind: Kind, listed: Any) -> Iterator[Allowance]:
        if not isinstance(listed, list):
            self._refuse(kind, kind, f"is {quoted(listed)}; it should be a list of names and tables")
        for number, item in enumerate(listed, 1):
            key = f"{kind}[{number}]"
            if not isinstance(item, (str, dict)):
                self._refuse(key, kind, f"is {quoted(item)}; it should be a name or a table with a name")
            yield self._entry(kind, key, {"name": item} if isinstance(item, str) else item)

    def _entry(self, kind: Kind, key: str, told: Mapping[str, Any]) -> Allowance:
        for one in told:
            if one not in _ENTRY:
                self._refuse(f"{key}.{one}", one, f"no such key{did_you_mean(one, _ENTRY)}")
        if "name" not in told:
            self._refuse(key, kind, "needs a name")
        if "key" in told and kind != "drift":
            self._refuse(f"{key}.key", "key", "only a drift has keys")
        values = {one: self._value(f"{key}.{one}", one, value) for one, value in told.items()}
        return Allowance(kind=kind, source=self._place(_quoted(values["name"])), **values)

    def _value(self, key: str, name: str, value: Any) -> Any:
        if name != "expires":
            return self._fit(key, name, value, _ENTRY[name])
        if isinstance(value, datetime) or not isinstance(value, date):
            self._refuse(key, name, f"is {quoted(value)}; it should be a date without quotes, as 2027-03-31")
        return value

    def _fit(self, key: str, name: str, value: Any, hint: Any) -> Any:
        try:
            return fit(value, hint)
        except ValueError as error:
            self._refuse(key, name, f"is {quoted(value)}; it should be {error}")

    def _refuse(self, key: str, written: str, what: str) -> NoReturn:
        raise PolicyError(what, source=self._place(_assigned(written)), key=key)

    def _place(self, pattern: str) -> str:
        """Return the name of the file, with the line if what is meant stands in one line only."""
        found = [number for number, line in enumerate(self._lines, 1) if re.search(pattern, line)]
        return f"{self._source}:{found[0]}" if len(found) == 1 else self._source


def _quoted(text: str) -> str:
    return rf"""(["']){re.escape(text)}\1"""


def _assigned(key: str) -> str:
    """Return the pattern of a line that sets a key or begins its table."""
    return rf"""(?:^|[\s,{{.\[])["']?{re.escape(key)}["']?\s*(?:=|\])"""
