"""``spangate report`` writes a page, says what it could not read, and harms no file that is there."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.otlp import otlp_line, otlp_span
from tests.report.recorded import broken, invoke, recording, sound


def test_the_page_is_written_whatever_the_verdicts_are(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    done = invoke("report", "-o", str(page), recording(tmp_path / "run.jsonl", broken()))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"{page}: 1 run, 1 refused\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>\n")


def test_where_no_place_is_named_it_is_report_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("report", recording(tmp_path / "run.jsonl", sound())).exit_code == 0
    assert "Passed: invoke_agent fixer" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    done = invoke("report", "-o", "-", recording(tmp_path / "run.jsonl", sound()))
    assert done.exit_code == 0
    assert done.stdout.startswith("<!doctype html>\n")
    assert done.stdout.endswith("</html>\n")
    assert done.stderr == ""


def test_standard_input(tmp_path: Path) -> None:
    recording(tmp_path / "run.jsonl", sound())
    done = invoke("report", "-o", str(tmp_path / "run.html"), "-", stdin=(tmp_path / "run.jsonl").read_bytes())
    assert done.exit_code == 0
    assert (tmp_path / "run.html").exists()


def test_the_same_recording_gives_the_same_page(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.jsonl", broken(), sound(5))
    assert invoke("report", "-o", "-", path).stdout == invoke("report", "-o", "-", path).stdout


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "nothing at all"), (otlp_line(otlp_span(attributes=[])), "1 span")]
)
def test_no_run_is_no_page(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "run.jsonl").write_bytes(content)
    done = invoke("report", "-o", str(tmp_path / "run.html"), str(tmp_path / "run.jsonl"))
    assert done.exit_code == 3
    assert said in done.stderr
    assert not (tmp_path / "run.html").exists()


def test_what_cannot_be_read_is_told_in_the_page_too(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"resourceSpans": [\n')
    page = tmp_path / "run.html"
    good = recording(tmp_path / "run.jsonl", sound())
    done = invoke("report", "-o", str(page), str(tmp_path / "bad.jsonl"), good)
    assert done.exit_code == 2
    assert "error: " in done.stderr
    assert "bad.jsonl could not be read" in page.read_text(encoding="utf-8")


def test_nothing_that_can_be_read_leaves_the_old_page(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    page.write_text("old")
    assert invoke("report", "-o", str(page), str(tmp_path / "missing.jsonl")).exit_code == 2
    assert page.read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'FILE...'"),
        (["--policy", "/nowhere/gates.toml", "run.jsonl"], "/nowhere/gates.toml: cannot be read"),
        (["--allow", "/nowhere/allow.toml", "run.jsonl"], "/nowhere/allow.toml: cannot be read"),
        (["--against", "old.jsonl", "one.jsonl", "two.jsonl"], "--against compares one FILE"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    done = invoke("report", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = invoke("report", "-o", str(tmp_path / "no" / "run.html"), recording(tmp_path / "run.jsonl", sound()))
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert "No such file or directory" in done.stderr


class TestTheFile:
    def test_is_replaced_as_a_whole_and_keeps_its_permissions(self, tmp_path: Path) -> None:
        page = tmp_path / "run.html"
        page.write_text("old")
        page.chmod(0o640)
        with page.open() as reader:
            assert invoke("report", "-o", str(page), recording(tmp_path / "run.jsonl", sound())).exit_code == 0
            assert reader.read() == "old"
        assert page.read_text(encoding="utf-8").endswith("</html>\n")
        assert stat.S_IMODE(page.stat().st_mode) == 0o640
        assert sorted(found.name for found in tmp_path.iterdir()) == ["run.html", "run.jsonl"]

    def test_has_the_permissions_of_any_new_one(self, tmp_path: Path) -> None:
        (tmp_path / "plain").touch()
        invoke("report", "-o", str(tmp_path / "run.html"), recording(tmp_path / "run.jsonl", sound()))
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "run.html")]
        assert modes[0] == modes[1]

    def test_behind_a_link_is_written_where_the_link_leads(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "run.html").symlink_to(tmp_path / "there" / "run.html")
        invoke("report", "-o", str(tmp_path / "run.html"), recording(tmp_path / "run.jsonl", sound()))
        assert (tmp_path / "run.html").is_symlink()
        assert (tmp_path / "there" / "run.html").is_file()

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_may_be_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        heard: list[str] = []
        reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text(encoding="utf-8")))
        reader.start()
        assert invoke("report", "-o", str(tmp_path / "pipe"), recording(tmp_path / "run.jsonl", sound())).exit_code == 0
        reader.join(60)
        assert heard[0].endswith("</html>\n")
