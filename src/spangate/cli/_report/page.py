"""The page as a whole: its templates, its style and its scripts, all in one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

import jinja2
from markupsafe import Markup

from spangate._units import counted
from spangate._version import __version__
from spangate.cli._report.embedded import content_policy
from spangate.cli._report.overview import Group, Overview
from spangate.cli._report.view import RunView

_PACKAGE: Final = "spangate.cli._report"
_STYLES: Final = (
    *("base.css", "head.css", "verdict.css", "trace.css", "rows.css", "details.css", "accounts.css", "screens.css"),
)
_SCRIPTS: Final = (
    *("theme.js", "page_data.js", "span_tree.js", "time_line.js", "tree_rows.js", "tree_keys.js", "tree_view.js"),
    *("span_details.js", "trace.js", "main.js"),
)
"""Both in the order in which they stand in the page: each script knows those before it, and the first runs before
anything is seen."""


@dataclass(frozen=True)
class Page:
    """What the template shows. ``against`` names the recording that is compared with, ``missing`` runs only there."""

    sources: Sequence[str]
    overview: Overview
    notes: Sequence[str] = ()
    against: str = ""
    missing: Sequence[str] = ()

    @property
    def refused(self) -> int:
        """How many runs were refused."""
        return self.overview.counts["fail"]

    @property
    def passed(self) -> int:
        """How many runs passed."""
        return self.overview.counts["pass"]

    @property
    def views(self) -> Sequence[RunView]:
        """The runs that are shown in full."""
        return self.overview.views

    @property
    def groups(self) -> Sequence[Group]:
        """The list of all runs."""
        return self.overview.groups

    @property
    def has_overview(self) -> bool:
        """True if there is more than one run to choose from."""
        return self.refused + self.passed > 1 or bool(self.missing)

    @property
    def heading(self) -> str:
        """The sentence above the list of runs."""
        runs = self.refused + self.passed
        if not self.refused:
            return f"{'Both runs' if runs == 2 else f'All {runs:,} runs'} passed" if runs > 1 else "The run passed"  # noqa: PLR2004
        return f"{self.refused:,} of {counted(runs, 'run')} {'is' if self.refused == 1 else 'are'} refused"

    @property
    def title(self) -> str:
        """The title of the window."""
        if self.has_overview:
            return f"{self.heading} · spangate report"
        (view,) = self.views
        return f"{'Passed' if view.is_passed else 'Refused'}: {view.name} · spangate report"


def written(page: Page) -> Iterator[str]:
    """Yield the page piece by piece."""
    files = resources.files(_PACKAGE)
    styles = [files.joinpath("styles", name).read_text("utf-8") for name in _STYLES]
    scripts = [files.joinpath("scripts", name).read_text("utf-8") for name in _SCRIPTS]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["sentence_case"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["number"] = "{:,}".format
    yield from environment.get_template("page.html").generate(
        page=page,
        version=__version__,
        policy=content_policy(scripts, styles),
        styles=[*map(Markup, styles)],
        scripts=[*map(Markup, scripts)],
    )
