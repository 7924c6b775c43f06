"""A diff as JUnit XML, which CI systems show as tests: one suite a pair of runs, one case a class of change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from spangate.cli._diff_words import (
    WORDS,
    Alone,
    Found,
    Group,
    accepted_by,
    answer,
    entry_words,
    groups,
    number_of,
    summary,
    title,
    told,
)
from spangate.compare._changes import Change, Difference
from spangate.compare._rules import KINDS, Kind

_MAX_LINES: Final = 1000
_COMPARABLE: Final = "closed and comparable"
_COUNTED: Final = ("tests", "failures", "errors", "skipped")
_FORBIDDEN: Final = re.compile("[^\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def diff_junit(differences: Iterable[Found]) -> str:
    """Write diffs as one document, without a line break at the end."""
    suites = [_Suite(found) for found in differences]
    numbers = {name: sum(suite.numbers[name] for suite in suites) for name in _COUNTED if name != "skipped"}
    head = f'<testsuites name="spangate diff" {_attributes(numbers)} time="0">'
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', head, *(suite.text for suite in suites), "</testsuites>"]
    )


class _Suite:
    """One pair of runs."""

    def __init__(self, found: Found) -> None:
        self.numbers = dict.fromkeys(_COUNTED, 0)
        self._name = title(found)
        is_diffed = isinstance(found, Difference) and found.refusal is None
        cases = [self._case(_COMPARABLE) if is_diffed else self._refused(summary(found))]
        cases += [self._class(found, kind) for kind in KINDS]
        name = _quoted(f"{answer(found)}: {self._name}")
        head = f'<testsuite name={name} {_attributes(self.numbers)} time="0">'
        said = f"<system-out>{_text(_about(found))}</system-out>"
        self.text = "\n".join([head, *cases, said, "</testsuite>"])

    def _refused(self, why: str) -> str:
        self.numbers["errors"] += 1
        return self._case(_COMPARABLE, f'<error message={_quoted(why)} type="refused"/>')

    def _class(self, found: Found, kind: Kind) -> str:
        why = "the runs are not diffed"
        if isinstance(found, Difference) and found.refusal is None:
            if found.rules.logs or not kind.startswith("log"):
                return self._diffed([change for change in found.changes if change.kind == kind], kind)
            why = "log records are not compared"
        self.numbers["skipped"] += 1
        return self._case(WORDS[kind], f"<skipped message={_quoted(why)}/>")

    def _diffed(self, changes: Sequence[Change], kind: Kind) -> str:
        told = groups(changes)
        bad = [group for group in told if not group.first.is_accepted]
        good = [_line(group) for group in told if group.first.is_accepted]
        inside = f"<system-out>{_text(good)}</system-out>" if good else ""
        if bad:
            self.numbers["failures"] += 1
            number = sum(number_of(change) for group in bad for change in group.changes)
            what = f"{number:,} {WORDS[kind]}: {bad[0].first.name}"
            lines = _text([_line(group) for group in bad])
            inside = f'<failure message={_quoted(what)} type="{kind}">{lines}</failure>{inside}'
        return self._case(WORDS[kind], inside)

    def _case(self, name: str, inside: str = "") -> str:
        self.numbers["tests"] += 1
        where = _quoted(f"spangate.diff.{self._name}")
        return f'<testcase classname={where} name={_quoted(name)} time="0">{inside}</testcase>'


def _line(group: Group) -> str:
    change = group.first
    said = [f"{group.word} {change.name}", f"in {change.agent}" if change.agent else "", group.what]
    said += [f"digest {group.digests}" if group.digests else "", f"span {group.where}" if group.where else ""]
    said += [f"{group.count:,} times" if group.count > 1 else "", accepted_by(change)]
    return "; ".join(part for part in said if part)


def _about(found: Found) -> list[str]:
    """Say what no case tells of."""
    if isinstance(found, Alone):
        return [found.what]
    said = [summary(found), f"A {found.a.run_id}, B {found.b.run_id}", *found.faults, *found.notes]
    said += [f"expired, allows nothing: {entry_words(entry)}{told(entry)}" for entry in found.expired]
    return [*said, *(f"unused: {entry_words(entry)}{told(entry)}" for entry in found.unused)]


def _attributes(numbers: Mapping[str, int]) -> str:
    return " ".join(f'{name}="{number}"' for name, number in numbers.items())


def _text(lines: Sequence[str]) -> str:
    cut = [*lines[:_MAX_LINES], *([f"and {len(lines) - _MAX_LINES:,} more"] if len(lines) > _MAX_LINES else [])]
    return escape("\n".join(map(_allowed, cut)))


def _quoted(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    r"""Return a text on one line with escapes such as ``\x1b`` for what XML cannot hold, and for line ends."""
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
