"""All runs of a page: which of them are shown in full, and the list of them, refused ones first, fault by fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from spangate._records import Gate, Verdict
from spangate._redaction import Redaction
from spangate._units import counted
from spangate._verdict.advice import ADVICE
from spangate.cli._diff_words import answer, summary
from spangate.cli._report.data import Judged, Room
from spangate.cli._report.texts import Texts
from spangate.cli._report.used import size_of
from spangate.cli._report.view import RunView, Viewer

MAX_ALIKE: Final = 20
"""So many runs with the same fault are shown in full."""
MAX_LISTED: Final = 200
"""So many of them are listed."""
MAX_VIEWS: Final = {"fail": 200, "pass": 100}
"""So many runs are shown in full."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list. ``key`` is None if it is not shown in full."""

    key: str | None
    name: str
    run_id: str
    about: str


@dataclass
class Group:
    """The runs that fail for the same fault, or all that pass."""

    verdict: Literal["pass", "fail"]
    heading: str
    where: str = ""
    codes: Sequence[str] = ()
    cluster: str | None = None
    number: int = 0
    runs: list[RunLine] = field(default_factory=list)

    @property
    def count(self) -> str:
        """The number of its runs in words."""
        return counted(self.number, "run")

    @property
    def more(self) -> str:
        """How many of them are not listed."""
        hidden = self.number - len(self.runs)
        return f"and {hidden:,} more" if hidden else ""


class Overview:
    """Takes in runs one by one, and keeps of each what the page will show.

    Args:
        gates: The gates that judged them.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._viewers = {verdict: Viewer(gates, Room()) for verdict in MAX_VIEWS}
        self._texts = Texts(Redaction())
        self._groups: dict[str | None, Group] = {}
        self._views: dict[str, list[RunView]] = {verdict: [] for verdict in MAX_VIEWS}
        self.counts = dict.fromkeys(MAX_VIEWS, 0)
        """How many runs were refused (``fail``), and how many passed."""

    @property
    def groups(self) -> list[Group]:
        """The refused runs by their fault, the most frequent first; those that pass at last."""
        return sorted(self._groups.values(), key=lambda group: (group.verdict == "pass", -group.number))

    @property
    def views(self) -> list[RunView]:
        """The runs that are shown in full, refused ones first."""
        return [*self._views["fail"], *self._views["pass"]]

    def add(self, judged: Judged) -> None:
        """Take in a run."""
        verdict = judged.verdict
        group = self._group(verdict)
        group.number += 1
        self.counts[verdict.verdict] += 1
        key = f"run-{sum(self.counts.values())}"
        views = self._views[verdict.verdict]
        is_shown = len(views) < MAX_VIEWS[verdict.verdict] and (verdict.passed or group.number <= MAX_ALIKE)
        if is_shown:
            views.append(self._viewers[verdict.verdict].view(judged, key))
        if len(group.runs) < MAX_LISTED:
            group.runs.append(self._line(judged, key if is_shown else None))

    def _line(self, judged: Judged, key: str | None) -> RunLine:
        verdict, found = judged.verdict, judged.difference
        differs = "" if found is None else f"; {answer(found)}: {self._texts.name(summary(found))}"
        warned = f", {counted(len(verdict.warnings), 'warning')}" if verdict.warnings else ""
        return RunLine(
            key,
            self._texts.name(verdict.run_name),
            self._texts.name(verdict.run_id),
            size_of(verdict) + warned + differs,
        )

    def _group(self, verdict: Verdict) -> Group:
        found = self._groups.get(verdict.cluster)
        if found is None:
            found = self._groups[verdict.cluster] = self._new_group(verdict)
        return found

    def _new_group(self, verdict: Verdict) -> Group:
        if verdict.passed:
            return Group("pass", "passed")
        codes = [*dict.fromkeys(finding.code for finding in verdict.failures)]
        known = ADVICE.get(codes[0])
        heading = self._texts.name(codes[0]) if known is None else known.meaning
        span = verdict.failures[0].span
        where = "" if span is None else self._texts.name(span.name)
        return Group("fail", heading, where, [*map(self._texts.name, codes)], verdict.cluster)
