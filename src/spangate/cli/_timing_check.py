"""What ``spangate check`` asks and says about the time of runs, against a baseline if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from spangate._errors import PolicyError
from spangate._records import Verdict
from spangate._run import Run
from spangate._timing import Times, times
from spangate._units import counted, shown
from spangate._verdict.text import Style
from spangate.cli._console import say
from spangate.cli._timing_baseline import Baseline, load_baseline
from spangate.cli._timing_report import timing_json, timing_text


class TimingCheck:
    """Accounts for the time of each run, and compares it with a baseline or takes it in.

    Args:
        baseline: What runs may take; None: whatever they like.
        path: Where the baseline is written at the end; None: it is compared with.
    """

    def __init__(self, baseline: Baseline | None, path: str | None = None) -> None:
        self._baseline = baseline
        self._path = path
        self._over = 0
        self._unknown: dict[str, None] = {}

    def text(self, run: Run, verdict: Verdict, style: Style) -> str:
        """Return the account of a run, with what it takes too much."""
        account = run.remember(times)
        over = [style(f"      over  {line}", "fail") for line in self._compared(run, verdict, account)]
        return "\n".join([timing_text(account, style), *over])

    def as_json(self, run: Run, verdict: Verdict) -> dict[str, Any]:
        """Return the same as JSON."""
        account = run.remember(times)
        over = self._compared(run, verdict, account)
        return timing_json(account) | ({} if self._baseline is None else {"over_baseline": [*over]})

    def _compared(self, run: Run, verdict: Verdict, account: Times) -> Sequence[str]:
        if self._baseline is None:
            return ()
        if self._path is not None:
            if verdict.passed:
                self._baseline.take_in(run.name, account)
            return ()
        over = self._baseline.over(run.name, account)
        if over is None:
            self._unknown[run.name] = None
        self._over += bool(over)
        return over or ()

    def close(self) -> bool:
        """Write the baseline, or say what it lacks and has too much. Returns whether a run is over it or not in it."""
        if self._baseline is None:
            return False
        if self._path is not None:
            try:
                Path(self._path).write_text(self._baseline.text(), encoding="utf-8")
            except OSError as error:
                raise click.UsageError(f"{self._path}: cannot be written: {error.strerror or error}") from None
            say(f"{self._path}: written, with {counted(len(self._baseline.entries), 'name')} of runs")
            return False
        for name in self._unknown:
            say(f"no baseline for runs named {shown(name)}: --update-timing-baseline writes one")
        for name in self._baseline.unused():
            say(f"note: no run for the baseline of {shown(name)}")
        if self._over:
            say(f"{counted(self._over, 'run')} over the timing baseline")
        return self._over > 0 or bool(self._unknown)


def timing_check(path: str | None, *, update: bool) -> TimingCheck:
    """Set up a check against the baseline at ``path``, to be written anew if ``update``.

    Raises:
        click.UsageError: an update without a file, or a file that is no baseline.
    """
    if path is None:
        if update:
            raise click.UsageError("--update-timing-baseline needs --timing-baseline FILE to write to")
        return TimingCheck(None)
    if update and not Path(path).exists():
        return TimingCheck(Baseline({}), path)
    try:
        known = load_baseline(path)
    except PolicyError as error:
        raise click.UsageError(str(error)) from None
    return TimingCheck(Baseline({}, known.tolerance), path) if update else TimingCheck(known)
