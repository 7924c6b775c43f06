"""The checks that settings of gates share. Each error names the setting and says what to write instead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def check_ceiling(setting: str, value: Any) -> None:
    """Make sure that ``value`` may be a ceiling: None for none, else a whole number, 0 or more.

    Raises:
        ValueError: anything else, truth values too.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"{setting} is {value!r}: write a whole number, 0 or more, or None for no ceiling")


def check_amount(setting: str, value: Any) -> None:
    """Make sure that ``value`` may be an amount of money: a finite number, 0 or more.

    Raises:
        ValueError: anything else, truth values too.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{setting} is {value!r}: write a number, 0 or more")


def check_table(setting: str, table: Any, columns: Sequence[str], *, all_wanted: bool = False) -> None:
    """Make sure that ``table`` maps names to mappings whose keys are among ``columns``, or are all of them.

    Raises:
        ValueError: a table that is none, or a key that is unknown or left out.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{setting} is {table!r}: write a mapping from name to {', '.join(columns)}")  # noqa: TRY004  a setting is a value
    for name, row in table.items():
        keys = set(row) if isinstance(row, Mapping) else {None}
        if not keys <= set(columns) or (all_wanted and keys != set(columns)):
            raise ValueError(f"{setting}[{name!r}] is {row!r}: write a mapping with {', '.join(columns)}")
