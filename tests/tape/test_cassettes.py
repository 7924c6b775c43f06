"""Files: what stands in them, who may write to one, and what is said of one that is no good."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spangate import tape
from spangate.tape import CassetteError, CassetteLockedError, TapeError
from tests.repositories import Workshop


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with tape.record(path) as recording:
        for number in range(3):
            recording.call("tool", {"name": f"t{number}"}, partial(dict, n=number))
    return path


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_cassette_is_for_its_owner(cassette: Path) -> None:
    assert stat.S_IMODE(cassette.stat().st_mode) == 0o600


def test_each_decision_is_there_as_soon_as_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with tape.record(path) as recording:
        recording.call("tool", {"name": "x"}, lambda: 1)
        assert len(lines(path)) == 2


def test_what_is_there_is_not_lost_by_accident(cassette: Path) -> None:
    with pytest.raises(CassetteError, match="is there already"):
        tape.record(cassette)
    assert len(lines(cassette)) == 4
    with tape.record(cassette, existing="overwrite"):
        pass
    assert len(lines(cassette)) == 1


def test_a_recording_goes_on_where_it_ended(cassette: Path) -> None:
    with tape.record(cassette, existing="append") as recording:
        recording.call("tool", {"name": "t0"}, lambda: {"n": "again"})
    with tape.replay(cassette, left_over="ignore") as replaying:
        found = [replaying.call("tool", {"name": "t0"}, lambda: None) for _ in range(2)]
    assert found == [{"n": 0}, {"n": "again"}]


class TestTwoTapes:
    def test_of_one_program_do_not_record_to_one_file(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        with tape.record(path), pytest.raises(CassetteLockedError, match="another tape is recording"):
            tape.record(path, existing="append")

    def test_of_two_programs_neither(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        program = f"from spangate import tape; t = tape.record({str(path)!r}); print('on', flush=True); input()"
        with subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout
            assert other.stdout.readline() == "on\n"
            with pytest.raises(CassetteLockedError):
                tape.record(path, existing="append")
            other.communicate("\n")
        with tape.record(path, existing="append"):
            pass


class TestBadFiles:
    def read(self, path: Path) -> str:
        with pytest.raises(CassetteError) as caught:
            tape.replay(path)
        return str(caught.value)

    def test_that_is_not_there(self, tmp_path: Path) -> None:
        assert "nothing.jsonl: cannot be read: No such file" in self.read(tmp_path / "nothing.jsonl")

    def test_that_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "a").touch()
        assert "a: is empty" in self.read(tmp_path / "a")

    @pytest.mark.parametrize(
        ("line", "number", "what"),
        [
            ("{", 3, "is no JSON"),
            ("[1]", 3, "is no JSON object"),
            ("", 3, "is no JSON"),
            ('{"key": 1}', 3, "'key' is no text"),
            ('{"key": "a", "kind": "b", "payload": [], "outcome": {}}', 3, "'payload' is no object"),
            ('{"key": "a", "kind": "b", "payload": {}, "outcome": {"chunks": 1}}', 3, "chunks are no array"),
            ('{"key": "a", "kind": "b", "payload": {}, "outcome": {"error": 1}}', 3, "an error without its type"),
            ('{"key": "a", "kind": "b", "payload": {}, "outcome": {"value": {"$base64": "?"}}}', 3, "not base64"),
        ],
    )
    def test_with_a_bad_line_in_it(self, cassette: Path, line: str, number: int, what: str) -> None:
        rows = lines(cassette)
        rows[number - 1] = line
        cassette.write_text("\n".join(rows) + "\n")
        said = self.read(cassette)
        assert f"run.jsonl: line {number}: " in said
        assert what in said

    def test_of_another_version(self, cassette: Path) -> None:
        cassette.write_text(cassette.read_text().replace('"spangate_tape":1', '"spangate_tape":2'))
        assert "is of version 2; this spangate reads 1" in self.read(cassette)

    def test_that_is_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text('{"resourceSpans": []}\n')
        assert "line 1: is no header of a cassette" in self.read(tmp_path / "a")

    def test_whose_last_line_a_crash_cut_off(self, cassette: Path, caplog: pytest.LogCaptureFixture) -> None:
        cassette.write_bytes(cassette.read_bytes()[:-9])
        with tape.replay(cassette, commit="ignore", left_over="ignore") as replaying:
            assert replaying.call("tool", {"name": "t1"}, lambda: None) == {"n": 1}
        assert replaying.report.recorded == 2
        assert "line 4 is cut off" in caplog.text
        with tape.record(cassette, existing="append") as recording:
            recording.call("tool", {"name": "t2"}, lambda: {"n": 2})
        assert len(tape.read_cassette(cassette).decisions) == 3


class TestWhatCannotBeWritten:
    def test_is_an_error_and_the_recording_is_over(self) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("no device that is always full")
        with pytest.raises(CassetteError, match="cannot be written: No space left"):
            tape.record("/dev/full", existing="append")

    def test_after_the_tape_was_closed(self, tmp_path: Path) -> None:
        recording = tape.record(tmp_path / "a")
        recording.close()
        with pytest.raises(CassetteError, match="the tape was closed"):
            recording.call("tool", {"name": "x"}, lambda: 1)
        called: list[int] = []
        with pytest.raises(CassetteError, match="the tape was closed"):
            recording.call("tool", {"name": "y"}, lambda: called.append(1))
        assert called == []  # what cannot be recorded does not happen any more

    def test_in_a_directory_that_may_not_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(CassetteError, match="cannot be opened"):
            tape.record(tmp_path / "file" / "a.jsonl")


class TestSecrets:
    SECRET = "sk-live-4242"  # noqa: S105  nobody's

    def record(self, path: Path, **settings: Any) -> tape.Recording:
        with tape.record(path, **settings) as recording:
            asked = {"headers": {"Authorization": self.SECRET}, "q": 1, "text": f"key {self.SECRET}"}
            recording.call("llm", asked, lambda: {"api_key": self.SECRET, "ok": True})
        return recording

    def test_under_their_keys_never_reach_the_file(self, tmp_path: Path) -> None:
        self.record(tmp_path / "a", redact=lambda _kind, value: {**value, "text": "…"} if "text" in value else value)
        assert self.SECRET not in (tmp_path / "a").read_text()

    def test_decide_all_the_same(self, tmp_path: Path) -> None:
        self.record(tmp_path / "a")
        asked = {"headers": {"Authorization": self.SECRET}, "q": 1, "text": f"key {self.SECRET}"}
        with tape.replay(tmp_path / "a") as replaying:
            assert replaying.call("llm", asked, lambda: None) == {"api_key": "<redacted>", "ok": True}
        asked["headers"] = {"Authorization": "another"}
        with (
            tape.replay(tmp_path / "a", left_over="ignore") as replaying,
            pytest.raises(tape.ReplayMiss, match="differs in what was redacted") as caught,
        ):
            replaying.call("llm", asked, lambda: None)
        assert "another" not in str(caught.value)


class TestTheProgramItself:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> tuple[Workshop, Path]:
        home = Workshop(tmp_path / "repo", {"agent.py": "1"})
        with tape.record(tmp_path / "a", harness=home.root):
            pass
        return home, tmp_path / "a"

    def test_of_the_same_commit_is_not_mentioned(
        self, recorded: tuple[Workshop, Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        home, path = recorded
        with tape.replay(path, harness=home.root):
            pass
        assert caplog.records == []

    def test_of_another_commit_is_told_or_refused(
        self, recorded: tuple[Workshop, Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        home, path = recorded
        home.put("agent.py", "2")
        home.commit()
        with tape.replay(path, harness=home.root):
            pass
        assert "it was recorded at commit" in caplog.text
        with pytest.raises(TapeError, match="it was recorded at commit"):
            tape.replay(path, harness=home.root, commit="raise")

    def test_with_changes_is_told(self, recorded: tuple[Workshop, Path], caplog: pytest.LogCaptureFixture) -> None:
        home, path = recorded
        home.put("agent.py", "2")
        with tape.replay(path, harness=home.root):
            pass
        assert "changes that are not committed" in caplog.text

    def test_outside_of_a_repository_is_not_known(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with tape.record(tmp_path / "a", harness=os.sep):
            pass
        with tape.replay(tmp_path / "a", harness=os.sep, commit="raise"):
            pass
        assert caplog.records == []
