"""The README names everything that can refuse a run: a gate or a code that it leaves out would surprise somebody."""

from __future__ import annotations

from pathlib import Path

from spangate._codes import DEFAULT_LEVELS
from spangate.gates import GATES

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
HEADING = "| gate | finds | evidence it needs | limits, and who should leave it off |"
CELLS = HEADING.count("|") - 1


def gate_table() -> dict[str, list[str]]:
    """Return the rows of the table of gates, all cells of each, by the name of the gate."""
    rows: dict[str, list[str]] = {}
    _, _, below = README.partition(f"{HEADING}\n")
    _ruler, *lines = below.split("\n")
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[cells[0].strip("`")] = cells
    return rows


def test_every_gate_has_its_row() -> None:
    table = gate_table()
    assert [gate.__name__ for gate in GATES if gate.__name__.lower() not in table] == []


def test_every_row_has_all_its_cells() -> None:
    assert [name for name, cells in gate_table().items() if len(cells) != CELLS or not all(cells)] == []


def test_no_row_tells_of_a_gate_that_is_not_there() -> None:
    known = {code.partition(".")[0] for code in DEFAULT_LEVELS} | {gate.__name__.lower() for gate in GATES}
    assert set(gate_table()) - known == set()


def test_every_code_is_mentioned() -> None:
    assert [code for code in DEFAULT_LEVELS if not _is_mentioned(code)] == []


def _is_mentioned(code: str) -> bool:
    """Say whether the README has the code, in full or, in its gate's row, without the gate."""
    gate, _, what = code.partition(".")
    row = next((line for line in README.splitlines() if line.startswith(f"| `{gate}` |")), "")
    return f"`{code}`" in README or f"`{what}`" in row
