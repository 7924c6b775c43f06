"""A page stays one that a browser can open, however much there is, and says what is not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spangate._judge import judge
from spangate.cli._report import overview
from spangate.cli._report.data import Judged, Room
from spangate.cli._report.tree import Row, folded
from spangate.cli._report.view import RunView, Viewer
from spangate.gates import default_gates
from tests.report.browser import Browser
from tests.report.recorded import broken, many, page_of, recording, sound
from tests.report.test_browser import active, labels
from tests.report.test_page import words
from tests.spans import run_of, span


def rows(*depths: int) -> list[Row]:
    return [Row(depth, span("tool", f"{place}")) for place, depth in enumerate(depths)]


class TestFolding:
    @pytest.mark.parametrize(
        ("most", "kept", "counts"),
        [
            (9, "0 1 2 3 4 5", {}),
            (6, "0 1 2 3 4 5", {}),
            (4, "0 1 4 5", {1: 2}),
            (3, "0 1 4", {0: 1, 1: 2}),
            (1, "0", {0: 5}),
        ],
    )
    def test_keeps_the_highest_rows_and_counts_what_was_below(
        self, most: int, kept: str, counts: dict[int, int]
    ) -> None:
        found = folded(rows(0, 1, 2, 3, 1, 1), most, [])
        assert " ".join(row.span.name for row in found) == kept
        assert {int(row.span.name): row.folded for row in found if row.folded} == counts

    def test_keeps_what_something_was_found_about_and_the_way_to_it(self) -> None:
        found = rows(0, 1, 1, 1, 2, 3)
        kept = folded(found, 4, [found[5].span])
        assert [row.span.name for row in kept] == ["0", "3", "4", "5"]
        assert kept[0].folded == 2


def view(room: Room, *, spans: int = 300) -> RunView:
    run = run_of(many(spans, leak=spans - 4))
    return Viewer(default_gates(), room).view(Judged(run, judge(run, default_gates())), "run-1")


def test_what_is_folded_is_said() -> None:
    (note,) = view(Room(rows=100)).notes
    assert note == "200 spans folded away, so that the page stays small: rows say how many are below them."


def test_details_that_find_no_room_are_said_and_those_of_findings_come_first() -> None:
    found = view(Room(details=1))
    (note,) = found.notes
    assert note.startswith("Attributes and events of 299 spans are left out")
    assert '"facts"' not in found.details[0]
    assert '"facts"' in found.details[2], "the span that was left open has its details"


def test_a_run_for_which_there_is_no_room_keeps_its_root() -> None:
    room = Room(rows=50)
    assert view(room).notes[0].startswith("250 spans folded")
    assert view(room).notes[0].startswith("299 spans folded")


def test_runs_alike_are_not_all_shown_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MAX_ALIKE", 2)
    monkeypatch.setattr(overview, "MAX_LISTED", 3)
    recording(tmp_path / "runs.jsonl", *(broken(trace) for trace in range(1, 6)), sound(9))
    page = page_of(tmp_path / "runs.jsonl")
    told = words(page)
    assert "A span was started and never ended, at execute_tool read_file 5 runs" in told
    assert "and 2 more" in told
    assert told.count("All runs") == 3


@pytest.mark.timeout(300)
def test_a_hundred_thousand_spans_open_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    recording(tmp_path / "run.jsonl", many(101_000, leak=100_006))
    browser.open(page_of(tmp_path / "run.jsonl"))
    assert browser.text(".trace .notes").startswith("1,000 spans folded away")
    assert len(labels(browser)) < 100
    browser.one(".button.next").click()
    assert "still open" in active(browser)
    assert browser.console() == []
