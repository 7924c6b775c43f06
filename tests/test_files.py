"""Files written, deleted and moved with spans that tell it, and paths that lead nowhere else."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import files
from spangate._adapter import record
from spangate._dialects import classify
from spangate._errors import SpangateError
from tests.repositories import SETTINGS, Workshop

Act: TypeAlias = Callable[[Path, Any], object]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return Workshop(tmp_path / "repo", {"a": "a", "dir/b": "b"})


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    files.use_provider(provider)
    yield exporter
    files.use_provider(None)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def told(spans: InMemorySpanExporter) -> Mapping[str, Any]:
    return dict(only(spans).attributes or {})


def test_a_new_file(work: Workshop, spans: InMemorySpanExporter) -> None:
    assert files.write(work.root, "x/y/new.txt", "ü") == sha("ü")
    assert (work.root / "x/y/new.txt").read_text(encoding="utf-8") == "ü"
    assert told(spans) == {"op": "write", "path": "x/y/new.txt", "after_hash": sha("ü")}


def test_an_existing_file_keeps_its_mode(work: Workshop, spans: InMemorySpanExporter) -> None:
    (work.root / "a").chmod(0o751)
    files.write(work.root, Path("a"), b"A")
    assert stat.S_IMODE((work.root / "a").stat().st_mode) == 0o751
    assert told(spans) == {"op": "write", "path": "a", "before_hash": sha("a"), "after_hash": sha("A")}


def test_a_new_file_has_the_mode_that_others_have(work: Workshop) -> None:
    files.write(work.root, "new", "")
    work.put("other", "")
    assert (work.root / "new").stat().st_mode == (work.root / "other").stat().st_mode


def test_a_deletion(work: Workshop, spans: InMemorySpanExporter) -> None:
    files.delete(work.root, "dir/b")
    assert not (work.root / "dir/b").exists()
    assert told(spans) == {"op": "delete", "path": "dir/b", "before_hash": sha("b")}


def test_a_move(work: Workshop, spans: InMemorySpanExporter) -> None:
    files.move(work.root, "a", "new/a")
    assert (work.root / "new/a").read_text() == "a"
    assert told(spans) == {
        "op": "move",
        "path": "a",
        "target_path": "new/a",
        "before_hash": sha("a"),
        "after_hash": sha("a"),
    }


def test_a_tool_declares_its_outputs(work: Workshop, spans: InMemorySpanExporter) -> None:
    with files.tool(work.root, outputs=["dist/*.js"], name="build") as span:
        span.set_attribute("more", 1)
    assert only(spans).name == "build"
    assert told(spans) == {"op": "run", "outputs": ("dist/*.js",), "more": 1}


@pytest.mark.parametrize(
    "act",
    [
        lambda root: files.write(root, "a", ""),
        lambda root: files.delete(root, "a"),
        lambda root: files.move(root, "a", "b"),
        lambda root: ExitStack().enter_context(files.tool(root, outputs=["*"])),
    ],
    ids=["write", "delete", "move", "tool"],
)
def test_each_span_is_a_tool(work: Workshop, act: Callable[[Path], object]) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    started: list[Any] = []
    processor = SimpleSpanProcessor(InMemorySpanExporter())
    processor.on_start = lambda span, parent_context=None: started.append(span)  # type: ignore[method-assign]  # noqa: ARG005
    provider.add_span_processor(processor)
    files.use_provider(provider)
    act(work.root)
    files.use_provider(None)
    span = record(started[0], is_open=True)
    classify(span)
    assert (span.scope, span.role) == ("spangate", "tool")


def test_a_directory_inside_stands_for_the_repository(work: Workshop, spans: InMemorySpanExporter) -> None:
    files.write(work.root / "dir", "c", "")
    assert (work.root / "c").exists()
    assert told(spans)["path"] == "c"


def link_out(work: Workshop) -> None:
    (work.root / "out").symlink_to(work.root.parent)


def link_file_out(work: Workshop) -> None:
    (work.root / "out").symlink_to(work.root.parent / "file")


def link_to_git(work: Workshop) -> None:
    (work.root / "out").symlink_to(".git")


def link_circle(work: Workshop) -> None:
    (work.root / "out").symlink_to("out")


def sibling(work: Workshop) -> None:
    (work.root.parent / "repo-2").mkdir()


REFUSED: dict[str, tuple[Callable[[Workshop], None] | None, Any]] = {
    "..": (None, ".."),
    "up and out": (None, "../x"),
    "out by a detour": (None, "dir/../../x"),
    "out and into a sibling with a longer name": (sibling, "../repo-2/x"),
    "absolute": (None, "/x"),
    "a directory link that leads out": (link_out, "out/x"),
    "git's own": (None, ".git/config"),
    "git's own in capitals": (None, ".GIT/config"),
    "a directory link to git's own": (link_to_git, "out/config"),
    "git's own of another repository": (None, "dir/.git/config"),
    "git's file": (None, ".git"),
    "a link to itself": (link_circle, "out/x"),
    "the top": (None, "."),
    "nothing": (None, ""),
    "a zero": (None, "a\0b"),
    "bytes that lead out": (None, b"../x"),
}


@pytest.mark.parametrize(
    "act",
    [
        lambda root, path: files.write(root, path, "x"),
        files.delete,
        lambda root, path: files.move(root, path, "new"),
        lambda root, path: files.move(root, "a", path),
    ],
    ids=["write", "delete", "move", "move to"],
)
@pytest.mark.parametrize(("prepare", "path"), REFUSED.values(), ids=REFUSED)
def test_a_path_that_leads_elsewhere_is_refused(
    work: Workshop, spans: InMemorySpanExporter, prepare: Callable[[Workshop], None] | None, path: Any, act: Act
) -> None:
    if prepare is not None:
        prepare(work)
    before = sorted(str(place) for place in work.root.parent.rglob("*"))
    with pytest.raises(files.PathError):
        act(work.root, path)
    assert spans.get_finished_spans() == ()
    assert sorted(str(place) for place in work.root.parent.rglob("*")) == before


def test_an_absolute_path_is_refused_even_inside(work: Workshop) -> None:
    with pytest.raises(files.PathError, match="relative"):
        files.write(work.root, work.root / "a", "x")


def test_a_write_through_a_link_that_leads_out_is_refused(work: Workshop) -> None:
    link_file_out(work)
    with pytest.raises(files.PathError):
        files.write(work.root, "out", "x")
    assert not (work.root.parent / "file").exists()


def test_a_write_through_a_link_inside_writes_what_it_leads_to(work: Workshop, spans: InMemorySpanExporter) -> None:
    (work.root / "link").symlink_to("dir/b")
    files.write(work.root, "link", "B")
    assert (work.root / "link").is_symlink()
    assert told(spans)["path"] == "dir/b"


def test_a_path_through_a_linked_directory_is_told_as_git_knows_it(work: Workshop, spans: InMemorySpanExporter) -> None:
    (work.root / "link").symlink_to("dir")
    files.write(work.root, "link/c", "")
    assert told(spans)["path"] == "dir/c"


def test_a_link_is_deleted_and_moved_itself(work: Workshop, spans: InMemorySpanExporter) -> None:
    link_file_out(work)
    files.move(work.root, "out", "out2")
    files.delete(work.root, "out2")
    assert not (work.root / "out2").is_symlink()
    paths = [dict(span.attributes or {})["path"] for span in spans.get_finished_spans()]
    assert paths == ["out", "out2"]
    moved = dict(spans.get_finished_spans()[0].attributes or {})
    assert moved["after_hash"] == sha(str(work.root.parent / "file"))


def test_directories_are_no_files(work: Workshop) -> None:
    with pytest.raises(files.PathError, match="directory"):
        files.delete(work.root, "dir")
    with pytest.raises(files.PathError, match="directory"):
        files.move(work.root, "dir", "x")
    with pytest.raises(files.PathError, match="directory"):
        files.move(work.root, "a", "dir")


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../b"])
def test_a_pattern_that_leads_elsewhere_is_refused(work: Workshop, pattern: str) -> None:
    with pytest.raises(files.PathError, match="pattern"), files.tool(work.root, outputs=[pattern]):
        pass


def test_one_text_is_not_several_patterns(work: Workshop) -> None:
    with pytest.raises(TypeError, match="several"), files.tool(work.root, outputs="*.js"):
        pass


def test_where_there_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(SpangateError, match="in no git repository"):
        files.write(tmp_path, "a", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_worktree_is_a_repository(work: Workshop, tmp_path: Path) -> None:
    work.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    files.write(tmp_path / "other", "new", "x")
    assert (tmp_path / "other" / "new").exists()


def test_what_cannot_be_done_is_raised_and_told(work: Workshop, spans: InMemorySpanExporter) -> None:
    with pytest.raises(FileNotFoundError):
        files.delete(work.root, "nothing")
    span = only(spans)
    assert span.status.status_code.name == "ERROR"
    assert span.end_time is not None
    spans.clear()
    with pytest.raises(IsADirectoryError):
        files.write(work.root, "dir", "x")
    assert only(spans).status.status_code.name == "ERROR"
    assert sorted(path.name for path in work.root.iterdir()) == [".git", "a", "dir"]


def test_what_fails_inside_a_tool_is_raised_and_told(work: Workshop, spans: InMemorySpanExporter) -> None:
    with pytest.raises(ZeroDivisionError), files.tool(work.root, outputs=["*"]):
        raise ZeroDivisionError
    assert only(spans).status.status_code.name == "ERROR"


def test_whoever_reads_meanwhile_finds_the_old_file_or_the_new_one(work: Workshop) -> None:
    """So does whoever comes after a crash."""
    files.write(work.root, "big", "x" * (1 << 20))

    def write() -> None:
        for turn in range(100):
            files.write(work.root, "big", "xy"[turn % 2] * (1 << 20))

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        content = (work.root / "big").read_bytes()
        assert content in (b"x" * (1 << 20), b"y" * (1 << 20))
    writer.join()
    assert sorted(path.name for path in work.root.iterdir()) == [".git", "a", "big", "dir"]


def test_names_of_all_kinds(work: Workshop, spans: InMemorySpanExporter) -> None:
    for name in ("a b", "c\nd", "ü", b"caf\xe9"):
        files.write(work.root, name, "x")
    paths = [dict(span.attributes or {})["path"] for span in spans.get_finished_spans()]
    assert paths == ["a b", "c\nd", "ü", r'"caf\351"']
    assert Path(work.root, os.fsdecode(b"caf\xe9")).exists()


def test_files_are_written_without_any_provider(work: Workshop) -> None:
    program = "import sys\nfrom spangate import files\nroot = sys.argv[1]\n"
    program += "files.write(root, 'a', 'A')\nfiles.move(root, 'a', 'z')"
    subprocess.run([sys.executable, "-W", "error", "-c", program, work.root], check=True)
    assert (work.root / "z").read_text() == "A"
