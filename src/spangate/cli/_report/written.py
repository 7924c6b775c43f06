"""From recordings to a page that stands in a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone

from spangate._judge import Panel
from spangate._records import Gate
from spangate._units import counted
from spangate.cli._console import say
from spangate.cli._recordings import Tally, judged
from spangate.cli._report.data import Judged
from spangate.cli._report.overview import Overview
from spangate.cli._report.page import Page, written
from spangate.cli._report.texts import visible
from spangate.cli._two_recordings import two_recordings
from spangate.cli._written import STANDARD_OUTPUT, write_whole
from spangate.compare import Allowance, Rules, diff


def page_of(files: Sequence[str], gates: Sequence[Gate], tally: Tally) -> Page | None:
    """Return the page of all runs in the files, None if there is no run in them."""
    overview = Overview(gates)
    for run, verdict in judged(files, gates, tally):
        overview.add(Judged(run, verdict))
    if not tally.runs:
        return None
    notes = [f"{visible(name)} could not be read: its runs are not here." for name in tally.unreadable]
    return Page([*map(visible, files)], overview, notes)


def page_of_difference(
    against: str, name: str, gates: Sequence[Gate], rules: Rules, allowed: Sequence[Allowance]
) -> Page:
    """Return the page of the runs of one recording, each beside the run of another that it stands for.

    Exits with 2 and a line on standard error if a file cannot be read, with 3 if there is no run in one.
    """
    panel, overview = Panel(gates), Overview(gates)
    missing: list[str] = []
    for pair in two_recordings(against, name):
        if pair.b is None:
            missing.append(pair.name)
            continue
        found = None if pair.a is None else diff(pair.a, pair.b, rules=rules, allowed=allowed, today=_today())
        overview.add(Judged(pair.b, panel.judge(pair.b), found))
    return Page([visible(name)], overview, against=visible(against), missing=missing)


def _today() -> date:
    return datetime.now(tz=timezone.utc).date()


def write(page: Page, output: str) -> bool:
    """Write the page, and tell what is in it; False if it cannot be written, which is told, too."""
    try:
        write_whole(output, written(page))
    except OSError as error:
        say(f"error: {output}: {error.strerror or error}")
        return False
    if output != STANDARD_OUTPUT:
        say(f"{output}: {counted(page.refused + page.passed, 'run')}, {page.refused:,} refused")
    return True
