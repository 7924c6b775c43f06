"""Findings of a run, gathered by code, with what they mean, what to do, and where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangate._records import Finding, Span, Verdict
from spangate._run import Run
from spangate._verdict.advice import ADVICE
from spangate.cli._report.texts import Texts

MAX_PLACES: Final = 100
"""So many places of one code are named."""
MAX_CODES: Final = 50
_MAX_WAY: Final = 5
RESULTS: Final = {"pass": "Passed", "fail": "Failed", "not_evaluable": "Not evaluable"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a finding is: the names from the root down to its span, the row of that in the tree, and what was seen."""

    way: Sequence[str] = ()
    row: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """All findings of one code at one level."""

    code: str
    meaning: str
    do: str
    number: int
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class GateLine:
    """What one gate answered, and why."""

    name: str
    result: str
    words: str
    why: Sequence[str]


class Findings:
    """Writes down the findings of one run.

    Args:
        run: The run.
        texts: Makes texts of what was recorded.
        places: The rows of the tree by the identity of their spans.
    """

    def __init__(self, run: Run, texts: Texts, places: Mapping[int, int]) -> None:
        self._run = run
        self._texts = texts
        self._places = places

    def groups(self, findings: Iterable[Finding]) -> list[Group]:
        """Gather findings by code, codes and findings in the order in which they came."""
        gathered: dict[str, list[Finding]] = {}
        for finding in findings:
            gathered.setdefault(finding.code, []).append(finding)
        return [self._group(code, same) for code, same in [*gathered.items()][:MAX_CODES]]

    def _group(self, code: str, same: Sequence[Finding]) -> Group:
        advice = ADVICE.get(code)
        places = [self._place(finding) for finding in same[:MAX_PLACES]]
        meaning, do = advice or ("", "")
        return Group(self._texts.name(code), meaning, do, len(same), places)

    def _place(self, finding: Finding) -> Place:
        detail = self._texts.sentence(finding.detail)
        if finding.span is None:
            return Place(detail=detail)
        return Place(self._way(finding.span), self._places.get(id(finding.span)), detail)

    def _way(self, span: Span) -> list[str]:
        names = [self._texts.name(one.name) for one in (span, *self._run.ancestors(span))][::-1]
        if len(names) > _MAX_WAY:
            names[1 : len(names) - _MAX_WAY + 2] = ["…"]
        return names

    def data(self, verdict: Verdict) -> dict[str, Any]:
        """Return what the tree says of findings about its spans, and the advice on them by code."""
        about = [
            finding
            for finding in (*verdict.findings, *verdict.gaps)
            if finding.span is not None and id(finding.span) in self._places
        ]
        return {
            "marks": [self._mark(finding) for finding in about],
            "advice": {code: ADVICE[code] for code in sorted({one.code for one in about}) if code in ADVICE},
        }

    def _mark(self, finding: Finding) -> dict[str, Any]:
        return {
            "code": self._texts.name(finding.code),
            "level": finding.level,
            "row": self._places[id(finding.span)],
            "detail": self._texts.sentence(finding.detail),
        }


def gate_lines(verdict: Verdict, texts: Texts) -> list[GateLine]:
    """Return what each gate answered."""
    return [
        GateLine(texts.name(name), result, RESULTS[result], _why(name, result, verdict, texts))
        for name, result in verdict.gates.items()
    ]


def _why(name: str, result: str, verdict: Verdict, texts: Texts) -> list[str]:
    """Say why a gate answered so: its failures with their number, what it lacks, and what it warns of."""
    gaps = [texts.sentence(gap.detail) for gap in verdict.gaps if gap.gate == name]
    levels = {"fail": "", "warn": "warns of "}
    counts: dict[str, int] = {}
    for finding in verdict.findings:
        if finding.gate == name:
            label = f"{levels[finding.level or 'fail']}{texts.name(finding.code).partition('.')[2]}"
            counts[label] = counts.get(label, 0) + 1
    found = [label + (f" ({number:,})" if number > 1 else "") for label, number in counts.items()]
    return [*found, *dict.fromkeys(gaps)] or (["nothing wrong"] if result == "pass" else [])
