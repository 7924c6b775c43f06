"""What things are called: a gate, and a span whatever changes in its name from run to run."""

from __future__ import annotations

import re
from typing import Final

from spangate._records import Gate

MAX_LENGTH: Final = 256
"""Characters of a span's name that are looked at; what lies beyond is data, not name."""

_EDGE = r"(?<![0-9A-Za-z])"
_IDS = re.compile(
    rf"{_EDGE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}"  # a uuid
    rf"|{_EDGE}(?=[a-fA-F]*[0-9])[0-9a-fA-F]{{8,}}(?![0-9A-Za-z])"  # hex, as in hashes and span ids
    rf"|{_EDGE}(?=[A-Za-z]*[0-9]+[A-Za-z]+[0-9])[0-9A-Za-z]{{16,}}"  # letters and digits mixed, as in call_4fJq0Zk…
    r"|[0-9]+"
)


def gate_name(gate: Gate) -> str:
    """Return the gate's name: the function's, or the class's in lower case."""
    name = getattr(gate, "__name__", None)
    return name if isinstance(name, str) else type(gate).__name__.lower()


def stable_name(name: str) -> str:
    """Return a span's name without ids and digits, so that the same fault has the same name every night."""
    return _IDS.sub("", name[:MAX_LENGTH])
