"""All that a page says of one run, ready for the template: words, bars, and the data of its tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from spangate._records import Gate
from spangate._redaction import Redaction
from spangate.cli._report.data import Judged, Room, Writer
from spangate.cli._report.difference import DifferenceView, difference_view
from spangate.cli._report.embedded import as_data
from spangate.cli._report.findings import Findings, GateLine, Group, gate_lines
from spangate.cli._report.texts import Texts
from spangate.cli._report.tree import folded, holes_of, rows_of
from spangate.cli._report.used import Bar, Clock, budget_bars, clock_of, size_of
from spangate.cli._report.words import facts, notes, reasons


@dataclass(frozen=True)
class RunView:
    """What the template shows of a run. ``tree`` and ``details`` are data for the scripts."""

    key: str
    verdict: str
    name: str
    reasons: Sequence[str]
    facts: Sequence[tuple[str, str]]
    failures: Sequence[Group]
    warnings: Sequence[Group]
    gaps: Sequence[Group]
    gates: Sequence[GateLine]
    bars: Sequence[Bar]
    clock: Clock
    size: str
    cluster: str | None
    tree: Markup
    details: Sequence[Markup]
    notes: Sequence[str]
    difference: DifferenceView | None

    def at(self, row: int | None) -> str | None:
        """Return the address of a row in the page; None for none."""
        return None if row is None else f"{self.key}/{row}"

    @property
    def is_passed(self) -> bool:
        """True if the run may be believed."""
        return self.verdict == "pass"


class Viewer:
    """Makes views of runs, as long as there is room.

    Args:
        gates: The gates that judged the runs: their ceilings are drawn.
        room: How much the page may hold. Each view takes of it.
    """

    def __init__(self, gates: Sequence[Gate], room: Room) -> None:
        self._gates = gates
        self._room = room
        self._texts = Texts(Redaction())

    def view(self, judged: Judged, key: str) -> RunView:
        """Return the view of one run; ``key`` is what its elements in the page are called by."""
        run, verdict, texts = judged.run, judged.verdict, self._texts
        whole = [*rows_of(run, judged.base)]
        marked = [finding.span for finding in verdict.findings if finding.span is not None]
        shown = folded(whole, max(1, self._room.rows), marked)
        self._room.rows -= len(shown)
        places = {id(span): place for place, row in enumerate(shown) for span in (row.base, row.here) if span}
        findings, found = Findings(run, texts, places), judged.difference
        marks, writer = findings.data(verdict), Writer(judged, texts)
        details, lost = writer.chunks(shown, [mark["row"] for mark in marks["marks"]], self._room)
        return RunView(
            key=key,
            verdict=verdict.verdict,
            name=texts.name(verdict.run_name),
            reasons=[*map(texts.sentence, reasons(verdict))],
            facts=[(label, texts.name(value)) for label, value in facts(judged) if value],
            failures=findings.groups(verdict.failures),
            warnings=findings.groups(verdict.warnings),
            gaps=findings.groups(verdict.gaps),
            gates=gate_lines(verdict, texts),
            bars=budget_bars(run, self._gates, texts),
            clock=clock_of(run, self._gates, texts),
            size=size_of(verdict),
            cluster=verdict.cluster,
            tree=as_data({**writer.tree(shown), **marks, "holes": holes_of(run, texts)}),
            details=details,
            notes=[*notes(len(whole) - len(shown), lost)],
            difference=None if found is None else difference_view(found, texts, places),
        )
