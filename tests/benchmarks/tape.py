"""What a replayed decision takes, beside what anybody pays who writes its payload as JSON and hashes it."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from spangate import tape
from tests.benchmarks._rows import Row

LIMIT: Final = 100.0
DECISIONS: Final = 1_000
LAPS: Final = 7


def rows() -> Iterator[Row]:
    """Replay a recorded run of a thousand model calls, each with 4 KiB of messages and an answer of 1 KiB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        with tape.record(path) as recording:
            recorded = _microseconds(lambda: _decide(recording))
        replayed = median(_replayed(path) for _ in range(LAPS))
    hashed = median(_microseconds(lambda: [_hash(_asked(n)) for n in range(DECISIONS)]) for _ in range(LAPS))
    for measured, ours, limit in (
        ("a replayed decision", replayed, LIMIT),
        ("a recorded one, flushed", recorded, None),
    ):
        yield Row(
            benchmark="tape",
            measured=measured,
            unit="µs",
            ours=ours,
            peer="json and sha256",
            theirs=hashed,
            limit=limit,
            bound="figure",
        )


def _replayed(path: Path) -> float:
    with tape.replay(path, commit="ignore") as replaying:
        return _microseconds(lambda: _decide(replaying))


def _decide(either: tape.Tape) -> None:
    for number in range(DECISIONS):
        either.call("llm", _asked(number), _answer)


def _microseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    act()
    return (time.perf_counter_ns() - start) / 1000 / DECISIONS


def _asked(number: int) -> dict[str, Any]:
    return {"model": "small", "messages": [{"role": "user", "content": f"{number} " + "why " * 1000}], "tools": []}


def _answer() -> dict[str, Any]:
    return {"text": "since " * 170}


def _hash(payload: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
