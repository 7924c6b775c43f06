"""The README's table of instrumentations is what the recordings say."""

from __future__ import annotations

from tests.evaluable import END, README, START, table


def test_the_readme_holds_the_table_as_it_is_worked_out() -> None:
    text = README.read_text(encoding="utf-8")
    written = text.partition(START)[2].partition(END)[0].strip()
    assert written == table(), "run: python -m tests.evaluable"


def test_every_healthy_run_passes_or_says_what_is_missing() -> None:
    assert "fail" not in table()
