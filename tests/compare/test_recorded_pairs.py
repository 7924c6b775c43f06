"""What the diff answers for pairs of recorded runs of real frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import pairs
from tests.compare.runs import compared

CLASSES: Mapping[str, frozenset[str]] = {"edge_churn": frozenset({"edge_added", "edge_dropped"})}
"""What the expectations name by one word."""


@pytest.mark.parametrize("row", pairs.rows(), ids=pairs.named)
def test_a_pair(row: dict[str, Any], tmp_path: Path) -> None:
    a, b = (pairs.only_run(row[side], tmp_path) for side in "ab")
    found = compared(a, b, model_from_config=row.get("model_from_config"))
    answer = None if found.refusal is not None else "bounded" if found.bounded else "unbounded"
    kinds = {change.kind for change in found.unaccepted}
    classes = all(kinds & CLASSES.get(name, {name}) for name in row["classes"]) if answer == "unbounded" else True
    is_right = answer == row["expect_diff"] and classes
    if row["blind"] and not is_right:
        pytest.skip(f"{answer} {sorted(kinds)}, not as expected; told, not counted")
    assert is_right, (answer, found.refusal, found.changes)


@pytest.mark.parametrize("row", [row for row in pairs.rows() if row["expect_diff"] == "bounded"], ids=pairs.named)
def test_a_pair_that_is_bounded_is_so_from_either_side(row: dict[str, Any], tmp_path: Path) -> None:
    a, b = (pairs.only_run(row[side], tmp_path) for side in "ba")
    assert compared(a, b, model_from_config=row.get("model_from_config")).bounded
