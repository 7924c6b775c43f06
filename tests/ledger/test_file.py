"""The file of a ledger: shared with processes that die, locked, damaged, newer, closed to us; and free of secrets."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spangate import SpangateError
from spangate.ledger import (
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerReadOnlyError,
    LedgerVersionError,
    RetryLedger,
)

HAMMER = Path(__file__).with_name("hammer.py")
PROCESSES, CALLS = 8, 25
NOBODY = 65_534


def hammer(path: Path, who: int, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(HAMMER), str(path), str(who), str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def test_eight_processes_lose_no_row_and_share_no_number(path: Path) -> None:
    processes = [hammer(path, who, CALLS) for who in range(PROCESSES)]
    for step in (wait_until_ready, go):
        for process in processes:
            step(process)
    for process in processes:
        process.communicate(timeout=110)
        assert process.returncode == 0
    with closing(RetryLedger(path)) as ledger:
        attempts = ledger.attempts()
    assert len({attempt.id for attempt in attempts}) == len(attempts) == PROCESSES * CALLS
    assert Counter(attempt.session for attempt in attempts) == {str(who): CALLS for who in range(PROCESSES)}
    assert Counter(attempt.outcome for attempt in attempts) == {"ok": PROCESSES * 13, "error": PROCESSES * 12}
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)


TORN = """
import os, signal, sys
from spangate._ledger import table
from spangate.ledger import RetryLedger
ledger = RetryLedger(sys.argv[1])
with ledger.guard("before") as call:
    call.exit(1)
with ledger.guard("killed"):
    with ledger.book.store.writing() as connection:
        connection.execute("UPDATE calls SET tool = 'half', outcome = 'ok'")
        connection.execute("PRAGMA cache_spill = 1")
        print("in", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_in_the_middle_leaves_a_ledger_without_its_half(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TORN, path], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "in\n")
    with closing(RetryLedger(path)) as ledger:
        assert [(one.tool, one.outcome) for one in ledger.attempts()] == [("before", "error"), ("killed", None)]
        assert ledger.veto("before")
        assert not ledger.veto("killed")  # nobody knows how it ended


def test_a_ledger_that_somebody_makes_while_it_is_looked_at_is_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    makers: list[threading.Thread] = []
    connect = sqlite3.connect

    def look(statement: str) -> None:
        if statement.endswith("sqlite_master") and not makers:
            makers.append(threading.Thread(target=lambda: RetryLedger(path).veto("tool", {})))
            makers[0].start()
            makers[0].join(0.3)  # it is done by then, or waits for this very look

    def connected(*args: Any, **kwargs: Any) -> Any:
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(look)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connected)
    assert not RetryLedger(path).veto("tool", {}).blocked
    makers[0].join(30)
    assert not makers[0].is_alive()


def test_processes_that_are_killed_while_they_write_cost_the_others_nothing(path: Path) -> None:
    processes = [hammer(path, who, 10_000 if who < 2 else CALLS) for who in range(4)]
    for step in (wait_until_ready, go):
        for process in processes:
            step(process)
    for process in processes[2:]:
        process.communicate(timeout=110)
        assert process.returncode == 0
    for process in processes[:2]:
        process.kill()
        process.communicate(timeout=30)
    with closing(RetryLedger(path)) as ledger:
        counts = Counter(attempt.session for attempt in ledger.attempts())
    assert (counts["2"], counts["3"]) == (CALLS, CALLS)


@pytest.fixture
def filled(path: Path) -> Path:
    """Make a ledger with a call that failed."""
    with closing(RetryLedger(path)) as ledger, ledger.guard("tool") as call:
        call.exit(1)
    return path


def test_it_is_for_nobody_else(filled: Path) -> None:
    with closing(RetryLedger(filled)) as ledger, ledger.guard("other"):
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in filled.parent.iterdir()}
    assert modes == {"calls.db": 0o600, "calls.db-wal": 0o600, "calls.db-shm": 0o600}
    assert stat.S_IMODE(filled.parent.stat().st_mode) == 0o700


def test_one_that_somebody_has_locked_is_waited_for_and_then_told(filled: Path) -> None:
    told = r"calls\.db: somebody else has kept it locked for 0\.05 s; end the program that holds it"
    with closing(RetryLedger(filled, busy_timeout_s=0.05)) as ledger:
        with closing(sqlite3.connect(filled, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            other.execute("UPDATE calls SET version = 'x'")
            for use in (ask, call, look):
                with pytest.raises(LedgerLockedError, match=told):
                    use(ledger)
        assert ledger.veto("tool")


def scribble(path: Path) -> None:
    path.write_bytes(b"these are no calls " * 500)


def truncate_header(path: Path) -> None:
    os.truncate(path, 50)


def truncate_pages(path: Path) -> None:
    os.truncate(path, 4096)


def scramble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def another(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE mine (x)")


def ask(ledger: RetryLedger) -> None:
    ledger.veto("tool")


def call(ledger: RetryLedger) -> None:
    with ledger.guard("other"):
        pass


def look(ledger: RetryLedger) -> None:
    ledger.attempts()


@pytest.mark.parametrize("damage", [scribble, truncate_header, truncate_pages, scramble, another])
@pytest.mark.parametrize("use", [ask, call, look], ids=lambda use: use.__name__)
def test_a_damaged_one_is_told_and_not_touched(
    filled: Path, damage: Callable[[Path], None], use: Callable[[RetryLedger], None]
) -> None:
    damage(filled)
    before = filled.read_bytes()
    with closing(RetryLedger(filled)) as ledger:
        with pytest.raises(LedgerCorruptError) as told:
            use(ledger)
        assert str(told.value).startswith(f"{filled}: is ")
        assert "; " in str(told.value)
    assert filled.read_bytes() == before


def test_a_newer_one_is_told_and_not_touched(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as newer:
        newer.execute("PRAGMA user_version = 7")
    before = filled.read_bytes()
    with (
        closing(RetryLedger(filled)) as ledger,
        pytest.raises(LedgerVersionError, match=r"is 7, this one knows 1\); upgrade spangate"),
    ):
        ledger.attempts()
    assert filled.read_bytes() == before


def test_an_empty_file_becomes_a_ledger(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with closing(RetryLedger(path)) as ledger:
        assert ledger.attempts() == []
        with ledger.guard("tool") as call:
            call.exit(1)
        assert ledger.veto("tool")


def test_what_breaks_off_in_the_middle_is_undone(filled: Path) -> None:
    def broken(ledger: RetryLedger) -> None:
        with ledger.book.store.writing() as connection:
            connection.execute("UPDATE calls SET tool = 'half'")
            raise ZeroDivisionError

    with closing(RetryLedger(filled)) as ledger:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                broken(ledger)
        assert [attempt.tool for attempt in ledger.attempts()] == ["tool"]


@pytest.fixture
def shared(filled: Path) -> Iterator[Path]:
    """Put the ledger where another user may look for it, and be that user."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    copy = place / "calls.db"
    shutil.copy(filled, copy)
    copy.chmod(0o644)
    is_root = os.geteuid() == 0
    if not is_root:
        copy.chmod(0o444)
        place.chmod(0o555)
    else:
        os.seteuid(NOBODY)
    try:
        yield copy
    finally:
        if is_root:
            os.seteuid(0)
        place.chmod(0o755)
        shutil.rmtree(place)


def test_one_that_may_not_be_written_can_be_read(shared: Path) -> None:
    with closing(RetryLedger(shared)) as ledger:
        assert ledger.veto("tool")
        assert [attempt.tool for attempt in ledger.attempts()] == ["tool"]
        told = r"calls\.db: may not be written; let this user write the file and its directory"
        with pytest.raises(LedgerReadOnlyError, match=told), ledger.guard("other"):
            raise AssertionError
        with pytest.raises(LedgerReadOnlyError):
            ledger.forget_all()
        assert ledger.veto("tool")


def test_a_directory_that_may_not_be_written_is_told(shared: Path) -> None:
    for place in (shared.with_name("new.db"), shared.parent / "new" / "calls.db"):
        with closing(RetryLedger(place)) as ledger, pytest.raises(LedgerReadOnlyError, match="may not be written"):
            ledger.veto("tool")


def test_directories_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "calls.db"
    with closing(RetryLedger(path)) as ledger:
        ledger.veto("tool")
    assert path.is_file()


@pytest.mark.parametrize("place", ["file/calls.db", "directory"])
def test_a_path_that_cannot_be_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with closing(RetryLedger(tmp_path / place)) as ledger, pytest.raises(LedgerError, match="cannot be opened"):
        ledger.veto("tool")


def test_every_error_is_one_of_ours() -> None:
    kinds = (LedgerCorruptError, LedgerLockedError, LedgerReadOnlyError, LedgerVersionError)
    assert all(issubclass(kind, LedgerError) and issubclass(kind, SpangateError) for kind in kinds)


SECRET = "hunter2-c0rrect-h0rse"  # noqa: S105  nobody's
ODD = [
    {"password": SECRET},
    {"X-Api-Key": [SECRET, {"deep": SECRET}]},
    {"deploy": {"Client Secret": SECRET, "plain": SECRET}},
    {SECRET: 1},
    f"curl -H 'Authorization: Bearer {SECRET}' --token={SECRET}",
    ["--password", SECRET, SECRET],
    f'{{"dbPassword": "{SECRET}"}}',
]


@pytest.mark.parametrize("arguments", ODD)
def test_nothing_of_the_arguments_is_in_the_file(path: Path, arguments: object) -> None:
    with closing(RetryLedger(path)) as ledger:
        with pytest.raises(ValueError, match=SECRET), ledger.guard("curl", arguments, version=f"--token {SECRET}"):
            raise ValueError(SECRET)
        with ledger.guard(f"curl --api-key {SECRET}", arguments):
            pass
        files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert {"calls.db", "calls.db-wal"} <= set(files)
    assert b"curl" in files["calls.db-wal"]
    assert [name for name, data in files.items() if SECRET.encode() in data] == []
