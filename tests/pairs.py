"""Pairs of recorded runs, and what is to be said of each: whether the two compare, and what changed between them.

``x~2`` is ``x`` recorded a second time, with nothing changed. Where the model that was asked for is recorded nowhere,
only the one that answered, it is declared (``model_from_config``), as a user has to.
"""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path
from typing import Any

from spangate import archive
from spangate._forest.recorded import recorded_runs
from spangate._run import Run

_DATA = Path(__file__).parent / "data" / "recordings"


@functools.cache
def _files() -> dict[str, bytes]:
    with tarfile.open(_DATA / "pairs.tar.xz") as packed:
        files = ((member.name, packed.extractfile(member)) for member in packed)
        return {name: file.read() for name, file in files if file is not None}


def rows() -> list[dict[str, Any]]:
    """Return what is to be said of each pair."""
    found: list[dict[str, Any]] = json.loads((_DATA / "pairs.json").read_text(encoding="utf-8"))
    return found


def named(row: dict[str, Any]) -> str:
    """Return how a pair is called in a report of tests."""
    return f"{row['a']} {row['b']}".replace(".otlp.jsonl", "")


def unpacked(name: str, folder: Path) -> Path:
    """Write a recording to a folder, and return where it is."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_files()[name])
    return path


def only_run(name: str, folder: Path) -> Run:
    """Return the one run in a recording."""
    (run,) = [
        run
        for trace in archive.read(unpacked(name, folder))
        for run in recorded_runs(trace.spans, trace.starts_known)[0]
    ]
    return run
