"""What a diff of two long runs costs, beside reading the same two files; and an alignment, beside difflib's."""

from __future__ import annotations

import difflib
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from spangate import _keys as keys
from spangate import archive
from spangate._records import Span
from spangate._run import Run
from spangate._settle.look import read
from spangate.cli._diffing import without_collecting
from spangate.cli._two_recordings import recorded
from spangate.compare import diff
from spangate.compare._alignment import align
from tests.benchmarks._long_run import long_run
from tests.benchmarks._rows import Row

LIMIT_S: Final = 3
GROWTH: Final = 12
SMALL, LARGE = 10_000, 100_000
LAPS: Final = 5
_EVERY: Final = 1000
"""Every so many calls of the second run differ."""
_STAMPS: Final = {
    keys.FINGERPRINT_SOURCE: "wire",
    keys.FINGERPRINT_MISSING_MODEL: "false",
    **dict.fromkeys((keys.PROMPT_HASH, keys.PROMPT_TEXT_HASH, keys.FINGERPRINT_TUPLE), "0" * 16),
}
_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
_TODAY: Final = date(2026, 1, 1)
_ITEMS, _MANY = 2_000, 40_000


def rows() -> Iterator[Row]:
    """Read and diff two files of each size; the fastest of a few laps counts, in CPU time."""
    costs = {spans: _costs(spans) for spans in (SMALL, LARGE)}
    reading, diffing = costs[LARGE]
    yield Row(
        benchmark="diff",
        measured=f"CPU of a diff of two runs of {LARGE:,} spans",
        unit="s",
        ours=diffing,
        peer="reading the two files",
        theirs=reading,
        limit=LIMIT_S,
        bound="figure",
    )
    yield Row(
        benchmark="diff",
        measured=f"the same over two runs of {SMALL:,}",
        unit="s",
        ours=diffing,
        peer=f"{SMALL:,} spans",
        theirs=costs[SMALL][1],
        limit=GROWTH,
    )
    source = random.Random(7)  # noqa: S311  no secret
    few, more = ([source.randrange(5) for _ in range(_ITEMS)] for _ in range(2))
    many = [[source.randrange(5) for _ in range(_MANY)] for _ in range(2)]
    yield Row(
        benchmark="diff",
        measured=f"CPU of aligning {_ITEMS:,} random calls of five tools",
        unit="s",
        ours=_least(lambda: align(few, more)),
        peer="difflib",
        theirs=_least(lambda: difflib.SequenceMatcher(None, few, more, autojunk=False).get_opcodes()),
        limit=1,
    )
    yield Row(
        benchmark="diff",
        measured=f"CPU of aligning {_MANY:,} of them",
        unit="s",
        ours=_least(lambda: align(*many)),
        limit=LIMIT_S,
        bound="figure",
    )


def _costs(spans: int) -> tuple[float, float]:
    """Return the CPU seconds that reading two files takes, and the diff of what is in them."""
    with tempfile.TemporaryDirectory() as folder, without_collecting():
        paths = [Path(folder) / name for name in ("before.jsonl", "after.jsonl")]
        for number, path in enumerate(paths):
            archive.write_otlp(path, _spans(spans, number))
        reading, diffing = [], []
        for _ in range(LAPS):
            began = time.process_time()
            (a,), (b,) = (recorded(str(path)) for path in paths)
            reading.append(time.process_time() - began)
            diffing.append(_timed(lambda: _check(a, b)))  # noqa: B023  called at once
    return min(reading), min(diffing)


def _check(a: Run, b: Run) -> None:
    found = diff(a, b, today=_TODAY)
    kinds = {change.kind for change in found.changes}
    if found.refusal is not None or kinds != {"drift"}:
        raise AssertionError(f"the second run is meant to drift here and there: {found.refusal}, {kinds}")


def _spans(count: int, number: int) -> Iterator[Span]:
    """Yield the spans of a run, its model calls stamped; in the second run some calls have other arguments."""
    for at, span in enumerate(read(list(itertools.islice(long_run(with_messages=False), count))).spans):
        added = {}
        if span.role == "generation":
            added = _STAMPS
        elif span.role == "tool":
            added = {_ARGUMENTS: f'{{"query": {at if number and at % _EVERY < 4 else 0}, "limit": {at}}}'}
        yield replace(span, attributes={**span.attributes, **added})


def _least(work: Callable[[], object]) -> float:
    return min(_timed(work) for _ in range(LAPS))


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
