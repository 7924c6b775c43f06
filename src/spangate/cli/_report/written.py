"""From recordings to a page that stands in a file."""

from __future__ import annotations

from collections.abc import Sequence

from spangate._records import Gate
from spangate._units import counted
from spangate.cli._console import say
from spangate.cli._recordings import Tally, judged
from spangate.cli._report.data import Judged
from spangate.cli._report.overview import Overview
from spangate.cli._report.page import Page, written
from spangate.cli._report.texts import visible
from spangate.cli._written import STANDARD_OUTPUT, write_whole


def page_of(files: Sequence[str], gates: Sequence[Gate], tally: Tally) -> Page | None:
    """Return the page of all runs in the files, None if there is no run in them."""
    overview = Overview(gates)
    for run, verdict in judged(files, gates, tally):
        overview.add(Judged(run, verdict))
    if not tally.runs:
        return None
    notes = [f"{visible(name)} could not be read: its runs are not here." for name in tally.unreadable]
    return Page([*map(visible, files)], overview, notes)


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
