"""The side store: raw payloads as files by the hash of their bytes, private, bounded, and in nobody's way."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spangate.archive import SideStore

DAY_S = 86_400.0


def kept(store: SideStore, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()
    store.put(name, content)
    return name


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def at(store: SideStore, seconds: float) -> None:
    store._clock = lambda: seconds


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "payloads"


def test_a_payload_is_found_by_its_hash(directory: Path) -> None:
    store = SideStore(directory)
    name = kept(store, b"secret")
    assert store.get(name) == b"secret"
    assert (directory / name).read_bytes() == b"secret"
    assert names(directory) == {name}
    assert store.errors == 0


def test_files_and_directory_are_private_whatever_the_umask(directory: Path) -> None:
    before = os.umask(0)
    try:
        name = kept(SideStore(directory), b"secret")
    finally:
        os.umask(before)
    assert mode(directory) == 0o700
    assert mode(directory / name) == 0o600


def test_a_directory_that_others_may_enter_is_refused_and_left_as_it_is(directory: Path) -> None:
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    with pytest.raises(ValueError, match="has mode 0755: others may enter it; make it 0700 or name another"):
        SideStore(directory)
    assert mode(directory) == 0o755


@pytest.mark.parametrize("bounds", [{"max_age_s": 0}, {"max_age_s": float("nan")}, {"max_bytes": -1}])
def test_a_bound_that_is_none_is_refused_by_name(directory: Path, bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bounds))}=.*: this has to be more than 0"):
        SideStore(directory, **bounds)
    assert not directory.exists()


@pytest.mark.parametrize("text", ["", "../../etc/passwd", "a" * 63, "A" * 64, "g" * 64, "a" * 64 + "\n"])
def test_what_is_no_hash_is_not_looked_for(directory: Path, text: str) -> None:
    with pytest.raises(ValueError, match="is no sha256: 64 hex digits are wanted"):
        SideStore(directory).get(text)


def test_what_is_not_there_or_was_changed_is_not_returned(directory: Path) -> None:
    store = SideStore(directory)
    name = kept(store, b"secret")
    assert store.get("0" * 64) is None
    (directory / name).write_bytes(b"other")
    assert store.get(name) is None


def test_a_payload_is_kept_for_its_time_after_it_was_last_seen(directory: Path) -> None:
    store = SideStore(directory, max_age_s=DAY_S)
    at(store, 10 * DAY_S)
    old, seen_again = kept(store, b"old"), kept(store, b"seen again")
    at(store, 10.9 * DAY_S)
    kept(store, b"seen again")
    at(store, 11.5 * DAY_S)
    assert (store.get(old), store.get(seen_again)) == (None, b"seen again")
    new = kept(store, b"new")
    assert names(directory) == {seen_again, new}


def test_beyond_its_bound_the_oldest_go(directory: Path) -> None:
    store = SideStore(directory, max_bytes=100)
    made = []
    for number in range(10):
        at(store, 1e9 + number)
        made.append(kept(store, bytes([number]) * 30))
        assert sum(path.stat().st_size for path in directory.iterdir()) <= 100
    assert store.get(made[0]) is None
    assert store.get(made[-1]) == b"\x09" * 30
    assert store.errors == 0


def test_what_another_process_left_counts_and_foreign_files_are_left_alone(directory: Path) -> None:
    first = kept(SideStore(directory), b"x" * 60)
    (directory / "README").write_text("x" * 1000)
    store = SideStore(directory, max_bytes=100)
    second = kept(store, b"y" * 60)
    assert names(directory) == {"README", second}
    assert first != second


def test_what_is_too_large_is_counted(directory: Path) -> None:
    store = SideStore(directory, max_bytes=4)
    name = kept(store, b"12345")
    assert (store.get(name), store.errors) == (None, 1)


def test_what_a_crash_left_half_written_is_no_payload_and_goes_in_its_time(directory: Path) -> None:
    store = SideStore(directory, max_age_s=DAY_S)
    at(store, 10 * DAY_S)
    half = directory / f".{'0' * 64}.1.0.part"
    half.write_bytes(b"half")
    os.utime(half, (DAY_S, DAY_S))
    kept(store, b"new")
    assert not half.exists()


def test_errors_are_counted_and_logged_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: Any, **_more: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = SideStore(directory)
    with caplog.at_level(logging.WARNING, "spangate"), monkeypatch.context() as broken:
        broken.setattr(os, "open", full)  # a disk that is full is not to be had here
        kept(store, b"one")
        kept(store, b"two")
    assert store.errors == 2
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "[Errno 28] No space left on device; further ones are counted"
    ]
    assert names(directory) == set()
    assert store.get(kept(store, b"one")) == b"one"


def test_a_directory_that_is_gone_costs_nothing_but_the_payload(directory: Path) -> None:
    store = SideStore(directory)
    directory.rmdir()
    kept(store, b"one")
    assert store.errors == 1


@pytest.mark.parametrize("content", [b"precious", b"PAYLOAD"])
def test_a_symbolic_link_in_the_place_of_a_payload_is_not_written_through(
    directory: Path, tmp_path: Path, content: bytes
) -> None:
    store = SideStore(directory)
    target = tmp_path / "target"
    target.write_bytes(content)
    name = hashlib.sha256(b"payload").hexdigest()
    (directory / name).symlink_to(target)
    kept(store, b"payload")
    assert target.read_bytes() == content
    assert store.get(name) == b"payload"


def test_processes_may_share_a_directory(directory: Path) -> None:
    write = (
        "import sys, hashlib; from spangate.archive import SideStore; store = SideStore(sys.argv[1])\n"
        "for n in range(200): c = b'%d' % n; store.put(hashlib.sha256(c).hexdigest(), c)\n"
        "assert store.errors == 0"
    )
    children = [subprocess.Popen([sys.executable, "-c", write, str(directory)]) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    store = SideStore(directory)
    assert all(store.get(hashlib.sha256(b"%d" % n).hexdigest()) == b"%d" % n for n in range(200))
    assert len(names(directory)) == 200
