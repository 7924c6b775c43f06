"""What git tells of a working tree, by real repositories: what has changed between two looks, and the hash of all."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import process
from spangate._fingerprint import Stamps
from spangate._fingerprint.overheard import Sent
from spangate._git import (
    GitError,
    call,
    changes,
    content_at,
    contents,
    diff_stat,
    name_of,
    open_repository,
    shown,
    snapshot,
    take,
    tree_hash,
)
from spangate._hosts import announce
from spangate._records import Delta, Exit, Finding
from tests.repositories import SETTINGS, Workshop

Step: TypeAlias = Callable[[Workshop], object]
FILES = {"a": "a\n", "b": "b\n", "dir/c": "c\n", ".gitignore": "*.log\nbuild/\n"}


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def work(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "repo", FILES)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def fate(delta: Delta) -> str:
    if delta.before is None:
        return "appeared"
    if delta.after is None:
        return "gone"
    return "mode" if delta.before == delta.after else "changed"


def fates(work: Workshop, before: Step, during: Step, *, with_ignored: bool = False) -> dict[str, str]:
    before(work)
    repo = open_repository(work.root)
    start = take(repo, with_ignored=with_ignored)
    during(work)
    end = take(repo, with_ignored=with_ignored)
    return {name: fate(delta) for name, delta in changes(repo, start, end).items()}


def nothing(_work: Workshop) -> None:
    pass


def all_of(*steps: Step) -> Step:
    return lambda work: [step(work) for step in steps]


def put(name: str, text: str | bytes) -> Step:
    return lambda work: work.put(name, text)


def git(*arguments: str) -> Step:
    return lambda work: work.git(*arguments)


def remove(name: str) -> Step:
    return lambda work: (work.root / name).unlink()


def link(name: str, target: str) -> Step:
    return lambda work: (work.root / name).symlink_to(target)


def chmod(name: str, mode: int) -> Step:
    return lambda work: (work.root / name).chmod(mode)


def touch(name: str) -> Step:
    return lambda work: os.utime(work.root / name, (1, 1))


def commit(work: Workshop) -> None:
    work.commit()


def submodule(work: Workshop) -> None:
    inner = Workshop(work.root.parent / "inner", {"x": "x\n"})
    work.git("submodule", "--quiet", "add", str(inner.root), "sub")
    work.git("-C", "sub", "config", "user.name", "Test")
    work.git("-C", "sub", "config", "user.email", "test@example.org")
    work.commit()


def nested(work: Workshop) -> None:
    Workshop(work.root / "nested", {"x": "x\n"})


CHANGES: dict[str, tuple[Step, Step, dict[str, str]]] = {
    "nothing": (nothing, nothing, {}),
    "a new file": (nothing, put("new", "x"), {"new": "appeared"}),
    "an empty one in a new directory": (nothing, put("x/y/z", ""), {"x/y/z": "appeared"}),
    "an edit": (nothing, put("a", "A\n"), {"a": "changed"}),
    "a deletion": (nothing, remove("dir/c"), {"dir/c": "gone"}),
    "a new time": (nothing, touch("a"), {}),
    "a rewrite of the same": (nothing, put("a", "a\n"), {}),
    "a mode": (nothing, chmod("a", 0o755), {"a": "changed"}),
    "a mode of what was edited before": (put("a", "A\n"), chmod("a", 0o755), {"a": "mode"}),
    "a rename": (nothing, git("mv", "a", "z"), {"a": "gone", "z": "appeared"}),
    "a rename and an edit": (nothing, all_of(git("mv", "a", "z"), put("z", "a\nz\n")), {"a": "gone", "z": "appeared"}),
    "a link": (nothing, link("l", "a"), {"l": "appeared"}),
    "a link in the place of a file": (nothing, all_of(remove("a"), link("a", "b")), {"a": "changed"}),
    "another target": (link("l", "a"), all_of(remove("l"), link("l", "b")), {"l": "changed"}),
    "an edit behind a link": (all_of(link("l", "a"), commit), put("a", "A\n"), {"a": "changed"}),
    "a file in the place of a link to the same": (link("l", "a"), all_of(remove("l"), put("l", "a")), {"l": "mode"}),
    "a directory in the place of a file": (
        nothing,
        all_of(remove("a"), put("a/b", "")),
        {"a": "gone", "a/b": "appeared"},
    ),
    "dirty before": (all_of(put("a", "A"), put("new", "x"), remove("b")), nothing, {}),
    "an edit of what was dirty": (put("a", "A"), put("a", "B"), {"a": "changed"}),
    "back to what was committed": (put("a", "A"), put("a", "a\n"), {"a": "changed"}),
    "an edit of what was untracked": (put("new", "x"), put("new", "y"), {"new": "changed"}),
    "deleting what was untracked": (put("new", "x"), remove("new"), {"new": "gone"}),
    "bringing back what was deleted": (remove("a"), put("a", "a\n"), {"a": "appeared"}),
    "staging": (put("a", "A"), git("add", "a"), {}),
    "staging something new": (put("new", "x"), git("add", "new"), {}),
    "announcing something new": (put("new", "x"), git("add", "-N", "new"), {}),
    "unstaging": (all_of(put("a", "A"), git("add", "a")), git("reset", "--quiet"), {}),
    "forgetting what stays on disk": (nothing, git("rm", "--quiet", "--cached", "a"), {}),
    "forgetting and editing": (nothing, all_of(git("rm", "--cached", "a"), put("a", "A")), {"a": "changed"}),
    "forgetting and ignoring": (
        nothing,
        all_of(git("rm", "--cached", "a"), put(".gitignore", "*.log\nbuild/\na\n")),
        {".gitignore": "changed"},
    ),
    "staged, and edited back": (all_of(put("a", "A"), git("add", "a")), put("a", "a\n"), {"a": "changed"}),
    "staged in between, and edited back": (nothing, all_of(put("a", "A"), git("add", "a"), put("a", "a\n")), {}),
    "a commit of what was dirty": (all_of(put("a", "A"), put("new", "x"), remove("b")), commit, {}),
    "a commit of an edit": (nothing, all_of(put("a", "A"), commit), {"a": "changed"}),
    "a commit of something new": (nothing, all_of(put("new", "x"), commit), {"new": "appeared"}),
    "a commit of a deletion": (nothing, all_of(remove("a"), commit), {"a": "gone"}),
    "a commit of a mode": (nothing, all_of(chmod("a", 0o755), commit), {"a": "changed"}),
    "a commit, and an edit": (nothing, all_of(put("a", "A"), commit, put("a", "B")), {"a": "changed"}),
    "a commit, and back": (nothing, all_of(put("a", "A"), commit, put("a", "a\n")), {}),
    "a commit undone, not its files": (
        all_of(put("a", "A"), commit),
        git("reset", "--quiet", "--soft", "HEAD~1"),
        {},
    ),
    "a commit undone with its index": (all_of(put("a", "A"), put("n", ""), commit), git("reset", "-q", "HEAD~1"), {}),
    "a commit undone with its files": (
        all_of(put("a", "A"), put("n", ""), commit),
        git("reset", "--quiet", "--hard", "HEAD~1"),
        {"a": "changed", "n": "gone"},
    ),
    "another message": (nothing, git("commit", "--quiet", "--amend", "--message", "better"), {}),
    "another branch": (
        all_of(git("checkout", "-q", "-b", "side"), put("a", "A"), commit, git("checkout", "-q", "main")),
        git("checkout", "-q", "side"),
        {"a": "changed"},
    ),
    "a branch without a commit": (nothing, git("checkout", "-q", "--orphan", "none"), {}),
    "a branch without anything": (
        nothing,
        all_of(git("checkout", "-q", "--orphan", "none"), git("rm", "-rfq", ".")),
        dict.fromkeys(FILES, "gone"),
    ),
    "a stash": (all_of(put("a", "A")), git("stash", "--quiet"), {"a": "changed"}),
    "a conflict": (
        all_of(
            git("checkout", "-q", "-b", "side"),
            put("a", "A\n"),
            commit,
            git("checkout", "-q", "main"),
            put("a", "B\n"),
            commit,
        ),
        lambda work: subprocess.run(["git", "merge", "side"], cwd=work.root, check=False, capture_output=True),
        {"a": "changed"},
    ),
    "what git is to overlook": (git("update-index", "--assume-unchanged", "a"), put("a", "A"), {}),
    "something ignored": (nothing, all_of(put("x.log", ""), put("build/x", "")), {}),
    "ignoring what was there": (put("new", "x"), put(".gitignore", "new\n*.log\nbuild/\n"), {".gitignore": "changed"}),
    "strange names": (
        nothing,
        all_of(put("a b", ""), put("c\nd", ""), put("\u00e9", ""), put('"q"', ""), put("t\t-> x", "")),
        dict.fromkeys(["a b", "c\nd", "\u00e9", '"q"', "t\t-> x"], "appeared"),
    ),
    "strange names that are committed": (
        all_of(put("a b", ""), put("c\nd", ""), commit),
        all_of(put("a b", "x"), put("c\nd", "x"), commit),
        {"a b": "changed", "c\nd": "changed"},
    ),
    "an edit in a submodule": (submodule, put("sub/x", "X\n"), {"sub": "changed"}),
    "a new file in a submodule": (submodule, put("sub/y", ""), {"sub": "changed"}),
    "another edit in a dirty submodule": (all_of(submodule, put("sub/x", "X")), put("sub/x", "Y"), {"sub": "changed"}),
    "a dirty submodule": (all_of(submodule, put("sub/x", "X")), nothing, {}),
    "another commit in a submodule": (
        submodule,
        git("-C", "sub", "commit", "--quiet", "--allow-empty", "--message", "on"),
        {"sub": "changed"},
    ),
    "a submodule": (nothing, submodule, {"sub": "appeared", ".gitmodules": "appeared"}),
    "a repository inside": (nothing, nested, {"nested": "appeared"}),
    "an edit in a repository inside": (nested, put("nested/x", "X"), {"nested": "changed"}),
    "a repository inside that stays": (nested, nothing, {}),
}


@pytest.mark.parametrize(("before", "during", "found"), CHANGES.values(), ids=CHANGES)
def test_what_changes_between_two_looks(work: Workshop, before: Step, during: Step, found: dict[str, str]) -> None:
    assert fates(work, before, during) == found


def test_a_repository_without_a_commit_has_changes(tmp_path: Path) -> None:
    work = Workshop(tmp_path / "new")
    assert fates(work, put("a", "a"), all_of(put("b", "b"), put("a", "A"))) == {"a": "changed", "b": "appeared"}
    assert fates(work, nothing, all_of(put("c", "c"), commit)) == {"c": "appeared"}


def test_ignored_files_count_where_they_are_asked_for(work: Workshop) -> None:
    during = all_of(put("x.log", "y"), put("build/x", ""), put("new", ""))
    found = fates(work, put("x.log", "x"), during, with_ignored=True)
    assert found == {"x.log": "changed", "build/x": "appeared", "new": "appeared"}


def test_what_only_comes_to_light_has_not_changed(work: Workshop) -> None:
    work.put("old.log", "x")
    repo = open_repository(work.root)
    before = replace(take(repo), taken_ns=time.time_ns() + 3_000_000_000)  # as if the file had lain there for a while
    work.put(".gitignore", "build/\n")
    assert set(changes(repo, before, take(repo))) == {".gitignore"}


@pytest.mark.parametrize("setting", ["true", "input"])
def test_line_ends_that_git_converts_are_no_change_and_hashes_are_of_the_disk(work: Workshop, setting: str) -> None:
    work.git("config", "core.autocrlf", setting)
    work.put("a", "a\r\n")
    work.commit()
    assert fates(work, nothing, touch("a")) == {}
    repo = open_repository(work.root)
    before = take(repo)
    work.put("a", "A\r\n")
    work.put("b", "b\r\n")  # git would commit what is there already
    found = changes(repo, before, take(repo))
    assert found["a"].after == sha("A\r\n")
    assert fates(work, nothing, all_of(put("a", "B\r\n"), commit)) == {"a": "changed"}
    assert fates(work, nothing, all_of(put("c", "c\r\n"), commit, put("c", "c\n"))) == {"c": "appeared"}


def test_modes_are_no_change_where_git_does_not_look_at_them(work: Workshop) -> None:
    work.git("config", "core.fileMode", "false")
    assert fates(work, put("b", "B"), all_of(chmod("a", 0o755), chmod("b", 0o755))) == {}


def test_hashes_are_those_of_the_bytes_and_of_a_links_target(work: Workshop) -> None:
    repo = open_repository(work.root)
    before = take(repo)
    work.put("new", b"\0\xff")
    (work.root / "l").symlink_to("./a")
    (work.root / "dangling").symlink_to("/nowhere")
    found = changes(repo, before, take(repo))
    assert {name: delta.after for name, delta in found.items()} == {
        "new": sha(b"\0\xff"),
        "l": sha("./a"),
        "dangling": sha("/nowhere"),
    }


def test_what_git_held_unchanged_is_known_by_its_object(work: Workshop) -> None:
    oid = work.git("rev-parse", "HEAD:a").strip()
    repo = open_repository(work.root)
    before = take(repo)
    work.put("a", "A")
    assert changes(repo, before, take(repo)) == {"a": Delta(f"git:{oid}", sha("A"))}


def test_a_submodule_is_one_path(work: Workshop) -> None:
    submodule(work)
    repo = open_repository(work.root)
    before = take(repo)
    work.put("sub/x", "X")
    assert [delta.is_whole for delta in changes(repo, before, take(repo)).values()] == [True]


def test_names_that_are_not_utf8(work: Workshop) -> None:
    raw = os.fsencode(work.root) + b"/caf\xe9\n"
    with open(raw, "wb") as file:  # noqa: PTH123  bytes are no Path
        file.write(b"x")
    repo = open_repository(work.root)
    (name,) = take(repo).differing
    assert name.encode("utf-8", "surrogateescape") == b"caf\xe9\n"
    assert shown(name) == r'"caf\351\012"'
    content = content_at(repo, name)
    assert content is not None
    assert content.sha256 == sha("x")
    work.commit()
    assert take(repo).differing == {}


@given(st.binary(min_size=1, max_size=20))
def test_a_name_can_be_sent_and_read_back(raw: bytes) -> None:
    name = raw.decode("utf-8", "surrogateescape")
    shown(name).encode("utf-8")
    assert name_of(shown(name)) == name


def test_a_huge_file_is_hashed_piece_by_piece(work: Workshop) -> None:
    with (work.root / "huge").open("wb") as file:
        file.truncate(64 << 20)
    repo = open_repository(work.root)
    tracemalloc.start()
    found = content_at(repo, "huge")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert found.sha256 == sha(bytes(64 << 20))
    assert peak < 8 << 20


def test_a_file_that_vanishes_meanwhile_is_gone(work: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    work.put("new", "x")
    repo = open_repository(work.root)
    status = work.git("status", "--porcelain=v2", "-z", "--branch", "-uall").encode()
    (work.root / "new").unlink()
    monkeypatch.setattr(type(repo), "ask", lambda *_: status)
    assert take(repo).differing == {"new": None}


def test_pipes_and_sockets_are_not_opened(work: Workshop) -> None:
    os.mkfifo(work.root / "pipe")
    (work.root / "a").unlink()
    os.mkfifo(work.root / "a")
    repo = open_repository(work.root)
    content = take(repo).differing["a"]
    assert content is not None
    assert content.kind == "special"


def test_a_lock_that_somebody_else_holds_is_no_obstacle_and_none_is_taken(work: Workshop) -> None:
    work.put("a", "A")
    lock = work.root / ".git" / "index.lock"
    lock.write_text("")
    index = (work.root / ".git" / "index").read_bytes()
    touch("b")(work)
    assert set(take(open_repository(work.root)).differing) == {"a"}
    assert lock.exists()
    lock.unlink()
    take(open_repository(work.root))
    assert (work.root / ".git" / "index").read_bytes() == index


def test_a_worktree_of_its_own(work: Workshop, tmp_path: Path) -> None:
    work.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    (tmp_path / "other" / "a").write_text("A")
    assert set(take(open_repository(tmp_path / "other")).differing) == {"a"}
    assert take(open_repository(work.root)).differing == {}


def test_a_directory_inside_stands_for_the_whole_tree(work: Workshop) -> None:
    work.put("a", "A")
    repo = open_repository(work.root / "dir")
    assert repo.root == str(work.root)
    assert set(take(repo).differing) == {"a"}


def test_case_is_ignored_where_git_ignores_it(work: Workshop) -> None:
    work.git("config", "core.ignorecase", "false")
    assert not open_repository(work.root).ignores_case
    work.git("config", "core.ignorecase", "true")
    assert open_repository(work.root).ignores_case


def no_repository(tmp_path: Path) -> Path:
    (tmp_path / "plain").mkdir()
    return tmp_path / "plain"


def bare(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "bare"], check=True)
    return tmp_path / "bare"


def inside_git(tmp_path: Path) -> Path:
    return Workshop(tmp_path / "repo", FILES).root / ".git"


def nowhere(tmp_path: Path) -> Path:
    return tmp_path / "nowhere"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (no_repository, "not a git repository"),
        (bare, "bare repository"),
        (inside_git, "inside of .git"),
        (nowhere, "no directory"),
    ],
)
def test_where_there_is_no_working_tree(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    place = make(tmp_path)
    with pytest.raises(GitError, match=reason):
        open_repository(place)
    with pytest.raises(GitError, match=reason):
        tree_hash(place)


def test_a_repository_that_vanishes(work: Workshop) -> None:
    repo = open_repository(work.root)
    shutil.rmtree(work.root / ".git")
    with pytest.raises(GitError, match="not a git repository"):
        take(repo)
    shutil.rmtree(work.root)
    with pytest.raises(GitError, match="is gone"):
        take(repo)


def test_git_that_is_not_installed(work: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work.root))
    with pytest.raises(GitError, match="git is not installed"):
        open_repository(work.root)


def test_git_that_does_not_answer(work: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "git"
    fake.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(call, "TIMEOUT_S", 0.2)
    with pytest.raises(GitError, match="took more than"):
        open_repository(work.root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read(work: Workshop) -> None:
    work.put("secret", "x")
    (work.root / "secret").chmod(0)
    with pytest.raises(GitError, match="secret cannot be read"):
        take(open_repository(work.root))


def test_variables_for_git_do_not_lead_elsewhere(
    work: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Workshop(tmp_path / "other", {"z": ""})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path))
    repo = open_repository(work.root)
    assert repo.root == str(work.root)
    assert take(repo).differing == {}


def test_a_monitor_that_the_repository_names_is_not_run(work: Workshop, tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-here\n")
    hook.chmod(0o755)
    work.git("config", "core.fsmonitor", str(hook))
    work.put("a", "A")
    assert set(take(open_repository(work.root)).differing) == {"a"}
    assert not (tmp_path / "was-here").exists()


class Hearing:
    """A host that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def tree_id_of(self, trace_id: int, span_id: int) -> str | None:  # noqa: ARG002  the protocol's
        return None

    def open_run(self, run_id: str, trace_id: int, span_id: int, *, is_own: bool) -> None:
        pass

    def has_open_run(self, run_id: str) -> bool:  # noqa: ARG002  the protocol's
        return False

    def take_request(self, request: Sent) -> None:
        self.told.append(request)

    def take_stamps(self, trace_id: int, span_id: int, stamps: Stamps) -> None:
        pass

    def watch_starts(self, trace_id: int, span_id: int) -> bool:  # noqa: ARG002  the protocol's
        return False

    def take_exit(self, row: Exit) -> None:
        self.told.append(row)

    def take_note(self, trace_id: int, span_id: int, note: Finding) -> None:  # noqa: ARG002  the protocol's
        self.told.append(note)


def test_git_is_no_program_of_the_run(work: Workshop) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    host = Hearing()
    announce(host)
    process.instrument(provider)
    process.watch()
    try:
        with provider.get_tracer("t").start_as_current_span("agent"):
            tree_hash(work.root)
            subprocess.run(["/bin/true"], check=True)
    finally:
        process.unwatch()
        process.uninstrument()
    assert [span.name for span in exporter.get_finished_spans()] == ["true", "agent"]
    assert len(host.told) == 1


def test_the_hash_of_a_tree_is_of_what_is_in_it(work: Workshop) -> None:
    first = tree_hash(work.root)
    touch("a")(work)
    assert tree_hash(work.root) == first
    work.put("a", "A")
    second = tree_hash(work.root)
    assert second != first
    work.git("add", "a")
    assert tree_hash(work.root) == second
    work.put("a", "a\n")
    work.git("reset", "--quiet")
    assert tree_hash(work.root) == first
    work.git("rm", "--quiet", "--cached", "a")
    assert tree_hash(work.root) == first
    work.put("new", "x")
    assert tree_hash(work.root) != first


def test_two_trees_with_the_same_in_them_have_one_hash(work: Workshop, tmp_path: Path) -> None:
    work.git("clone", "--quiet", str(work.root), str(tmp_path / "clone"))
    for root in (work.root, tmp_path / "clone"):
        (root / "a").write_text("A")
        (root / "new").write_text("x")
    assert tree_hash(work.root) == tree_hash(tmp_path / "clone")
    (tmp_path / "clone" / "new").rename(tmp_path / "clone" / "newer")
    assert tree_hash(work.root) != tree_hash(tmp_path / "clone")


def test_what_was_not_touched_since_is_not_hashed_again(work: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    real = contents._sha256

    def noted(path: Path) -> str:
        hashed.append(path.name)
        return real(path)

    monkeypatch.setattr(contents, "_sha256", noted)
    monkeypatch.setattr(snapshot, "_SETTLED_NS", 0)  # who would wait two seconds
    repo = open_repository(work.root)
    work.put("a", "A")
    work.put("b", "B")
    work.put("new", "x")
    first = take(repo)
    times = (work.root / "b").stat()
    work.put("b", "C")
    os.utime(work.root / "b", ns=(times.st_atime_ns, times.st_mtime_ns))  # as if nobody had been there
    hashed.clear()
    second = take(repo, since=first)
    assert hashed == ["b"]
    assert second.differing == take(repo).differing
    assert set(changes(repo, first, second)) == {"b"}


def test_what_happened_is_counted(work: Workshop) -> None:
    repo = open_repository(work.root)
    before = take(repo)
    work.put("new", "x")
    work.put("a", "A")
    (work.root / "b").unlink()
    assert str(diff_stat(changes(repo, before, take(repo)))) == "+1 ~1 -1"
