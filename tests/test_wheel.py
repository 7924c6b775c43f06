"""The built wheel holds what the package reads from its own folder, and what says that it is typed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.report.recorded import broken, recording

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "src" / "spangate" / "cli" / "_report"
PARTS = {".html", ".css", ".js"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as an installer does."""
    pytest.importorskip("hatchling", reason="hatchling is in the extra: pip install 'spangate[test]'")
    place = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; build_wheel({str(place)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, timeout=100)
    return next(place.glob("*.whl"))


def test_it_holds_every_part_of_the_page(wheel: Path) -> None:
    parts = {path.relative_to(PAGE.parents[2]).as_posix() for path in PAGE.rglob("*") if path.suffix in PARTS}
    assert len(parts) > 5
    assert parts - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_a_page_is_written_from_it(wheel: Path, tmp_path: Path) -> None:
    command = "from spangate.cli import main; import spangate; print(spangate.__file__); main()"
    path = recording(tmp_path / "run.jsonl", broken())
    done = subprocess.run(
        [sys.executable, "-c", command, "report", "-o", str(tmp_path / "run.html"), path],
        env={"PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert wheel.name in done.stdout
    assert "Refused" in (tmp_path / "run.html").read_text(encoding="utf-8")
