"""The checks that settings of gates share. Each error names the setting and what to write instead."""

from __future__ import annotations

from typing import Any


def check_ceiling(setting: str, value: Any) -> None:
    """Make sure that ``value`` may be a ceiling: None for none, else a whole number, 0 or more.

    Raises:
        ValueError: anything else, truth values too.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"{setting} is {value!r}: write a whole number, 0 or more, or None for no ceiling")
