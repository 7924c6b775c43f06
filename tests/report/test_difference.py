"""Two runs on one page: what came, went and changed, marked in the tree, listed, and with what allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.browser import Browser
from tests.report.recorded import agent, broken, changed, generation, invoke, page_of, recording, sound
from tests.report.test_browser import DETAILS, TREE, labels
from tests.report.test_page import words

ALLOW = """\
added = [{ name = "search", reason = "may look around" }]
dropped = ["read_file", "never_there"]
drift = [{ name = "write_file", key = "path", reason = "moved to lib", expires = 2999-01-31 }]
"""


@pytest.fixture
def old(tmp_path: Path) -> str:
    return recording(tmp_path / "old.jsonl", sound())


@pytest.fixture
def new(tmp_path: Path) -> Path:
    recording(tmp_path / "new.jsonl", changed())
    return tmp_path / "new.jsonl"


@pytest.fixture
def allow(tmp_path: Path) -> str:
    path = tmp_path / "allow.toml"
    path.write_text(ALLOW)
    return str(path)


class TestThePage:
    def test_lists_what_nothing_allows(self, old: str, new: Path) -> None:
        told = words(page_of(new, "--against", old))
        assert "Something has changed that nothing allows. 1 dropped, 1 added, 1 drift" in told
        assert "added search in invoke_agent fixer, digest " in told
        assert "dropped read_file in invoke_agent fixer, digest " in told
        assert "drift write_file in invoke_agent fixer, path, digest " in told

    def test_lists_what_is_allowed_and_why_and_what_allows_nothing(self, old: str, new: Path, allow: str) -> None:
        told = words(page_of(new, "--against", old, "--allow", allow))
        assert "Nothing has changed that is not allowed." in told
        assert "✓ Allowed, may look around, " in told
        assert "✓ Allowed, moved to lib, " in told
        assert "until 2999-01-31" in told
        assert "Unused: dropped never_there" in told

    def test_says_why_there_is_no_diff(self, old: str, tmp_path: Path) -> None:
        recording(tmp_path / "new.jsonl", broken())
        told = words(page_of(tmp_path / "new.jsonl", "--against", old))
        assert "The two runs are not compared call by call." in told
        assert "B is not closed, and is not diffed: " in told

    def test_names_runs_that_only_one_recording_has(self, tmp_path: Path) -> None:
        other = agent(7, name="invoke_agent stranger")
        only = agent(8, name="invoke_agent newcomer")
        recording(tmp_path / "old.jsonl", sound(1), [other, generation(other, 1, 1)])
        recording(tmp_path / "new.jsonl", changed(2), [only, generation(only, 1, 1)])
        told = words(page_of(tmp_path / "new.jsonl", "--against", str(tmp_path / "old.jsonl")))
        assert f"Only in {tmp_path / 'old.jsonl'} invoke_agent stranger" in told
        assert told.count("What differs from") == 1
        assert "9 spans; unbounded: 1 dropped, 1 added, 1 drift" in told
        assert "There is no run for it to be compared with" in told

    @pytest.mark.parametrize(
        ("against", "code", "said"), [("missing.jsonl", 2, "No such file"), ("empty.jsonl", 3, "no agent run in it")]
    )
    def test_is_not_written_where_one_side_cannot_be_read(
        self, new: Path, tmp_path: Path, against: str, code: int, said: str
    ) -> None:
        (tmp_path / "empty.jsonl").touch()
        page = tmp_path / "page.html"
        done = invoke("report", "--against", str(tmp_path / against), "-o", str(page), str(new))
        assert done.exit_code == code
        assert said in done.stderr
        assert not page.exists()


class TestTheTree:
    def test_marks_what_came_went_and_changed(self, browser: Browser, old: str, new: Path) -> None:
        browser.open(page_of(new, "--against", old))
        told = [label for label in labels(browser) if label.split(", ")[-1] in ("added", "dropped", "changed")]
        assert [(label.split(",")[0], label.split(", ")[-1]) for label in told] == [
            ("tool execute_tool read_file", "dropped"),
            ("tool execute_tool search", "added"),
            ("tool execute_tool write_file", "changed"),
        ]
        signs = browser.texts(".row.dropped .standing, .row.added .standing, .row.changed .standing")
        assert [ord(sign) for sign in signs] == [0x2212, ord("+"), ord("~")]

    def test_has_both_time_lines(self, browser: Browser, old: str, new: Path) -> None:
        browser.open(page_of(new, "--against", old))
        assert browser.run("return document.querySelectorAll('.row .span:not(.base)').length") == 9
        assert browser.run("return document.querySelectorAll('.row .span.base').length") == 9

    def test_jumps_from_change_to_change_and_shows_both_sides(
        self, browser: Browser, old: str, new: Path, tmp_path: Path
    ) -> None:
        browser.open(page_of(new, "--against", old))
        seen = []
        for _ in range(3):
            browser.one(".button.next").click()
            seen.append(browser.text(f"{DETAILS} .about"))
        assert seen == [
            "Only in the other run",
            "Only in this run",
            "Differs from the other run in: arguments",
        ]
        first = browser.texts(f"{DETAILS} .sides tbody tr:first-child > *")
        assert first[0] == "gen_ai.tool.call.arguments"
        assert '"app.py"' in first[1]
        assert '"lib/app.py"' in first[2]
        browser.picture(tmp_path / "difference.png")
        assert browser.console() == []

    def test_is_reached_from_the_list(self, browser: Browser, old: str, new: Path) -> None:
        browser.open(page_of(new, "--against", old))
        browser.one(".change.dropped a").click()
        browser.until(f"return document.querySelector('{DETAILS}')")
        assert browser.text(f"{DETAILS} .head") == "execute_tool read_file"

    def test_finds_changes_by_their_word(self, browser: Browser, old: str, new: Path) -> None:
        browser.open(page_of(new, "--against", old))
        browser.one(".toolbar input").send_keys("dropped")
        assert len(labels(browser)) == 2
        assert browser.one(TREE).is_displayed()
