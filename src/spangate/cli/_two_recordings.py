"""Two recordings, and which run in one stands for which in the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import click

from spangate import archive
from spangate._errors import RecordingError
from spangate._forest.recorded import recorded_runs
from spangate._names import stable_name
from spangate._run import Run
from spangate._units import counted, shown
from spangate.cli._console import NO_RUN, UNREADABLE, Progress, say

STDIN = "-"


class NoRuns(Exception):  # noqa: N818  it is told and ends in an exit code
    """There is nothing to set side by side: what to tell, and with which exit code to end."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)
        self.code = code


@dataclass(frozen=True, slots=True)
class Runs:
    """A run of the first file and the one that stands for it in the second; None where there is none."""

    a: Run | None
    b: Run | None

    @property
    def name(self) -> str:
        """The name of the run, as it is shown."""
        run = self.a or self.b
        return "" if run is None else shown(run.name)


def two_recordings(first: str, second: str) -> list[Runs]:
    """Read two files and pair their runs: those of one name, without ids and digits, in their order.

    Exits with 2 and a line on standard error if a file cannot be read, with 3 if there is no run in one.
    """
    if first == second == STDIN:
        raise click.UsageError("only one of the two can be standard input")
    try:
        return paired(recorded(first), recorded(second))
    except NoRuns as error:
        say(f"error: {error}")
        raise SystemExit(error.code) from None


def recorded(name: str) -> list[Run]:
    """Return the runs in a file.

    Raises:
        NoRuns: the file cannot be read, or there is no run in it.
    """
    progress = Progress(name)

    def tell(what: str) -> None:
        progress.clear()
        say(f"note: {what}")

    runs: list[Run] = []
    spans = 0
    try:
        for trace in archive.read(name, progress=progress.hook(), tell=tell):
            spans += len(trace.spans)
            runs += recorded_runs(trace.spans, trace.starts_known)[0]
    except RecordingError as error:
        raise NoRuns(str(error), UNREADABLE) from None
    except OSError as error:
        raise NoRuns(f"{name}: {error.strerror or error}", UNREADABLE) from None
    finally:
        progress.clear()
    if not runs:
        what = f"{counted(spans, 'span')}, none of them of an agent" if spans else "nothing at all"
        raise NoRuns(f"{name}: no agent run in it: there is {what}", NO_RUN)
    return runs


def paired(ours: Sequence[Run], theirs: Sequence[Run]) -> list[Runs]:
    """Join runs of one name in their order; where both files hold one run, these two, whatever their names."""
    if len(ours) == len(theirs) == 1:
        return [Runs(ours[0], theirs[0])]
    waiting: dict[str, list[Run]] = defaultdict(list)
    for run in reversed(theirs):
        waiting[stable_name(run.name)].append(run)
    found = []
    for run in ours:
        same = waiting.get(stable_name(run.name))
        found.append(Runs(run, same.pop() if same else None))
    left = {id(run) for runs in waiting.values() for run in runs}
    return found + [Runs(None, run) for run in theirs if id(run) in left]


def alone(runs: Runs, first: str, second: str) -> str:
    """Say that a run has no counterpart."""
    here, there = (first, second) if runs.b is None else (second, first)
    return f"a run {runs.name!r} is in {click.format_filename(here)} and not in {click.format_filename(there)}"
