"""A diff as JUnit XML, which CI systems show as tests: one suite a pair of runs, one case a class of change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from spangate.cli._diff_words import WORDS, Group, accepted_by, answer, entry_words, groups, summary, told
from spangate.compare._changes import Difference
from spangate.compare._rules import KINDS, Kind

_MAX_LINES: Final = 1000
_COMPARABLE: Final = "closed and comparable"
_COUNTED: Final = ("tests", "failures", "errors", "skipped")
_FORBIDDEN: Final = re.compile("[^\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def diff_junit(differences: Iterable[Difference]) -> str:
    """Write diffs as one document, without a line break at the end."""
    suites = [_Suite(found) for found in differences]
    numbers = {name: sum(suite.numbers[name] for suite in suites) for name in _COUNTED}
    head = f'<testsuites name="spangate diff" {_attributes(numbers)} time="0">'
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', head, *(suite.text for suite in suites), "</testsuites>"]
    )


class _Suite:
    """One pair of runs."""

    def __init__(self, found: Difference) -> None:
        self.numbers = dict.fromkeys(_COUNTED, 0)
        cases = [self._closed(found), *(self._class(found, kind) for kind in KINDS)]
        name = _quoted(f"{answer(found)}: {found.b.name}")
        head = f'<testsuite name={name} {_attributes(self.numbers)} time="0">'
        said = f"<system-out>{_text(_about(found))}</system-out>"
        self.text = "\n".join([head, *cases, said, "</testsuite>"])

    def _closed(self, found: Difference) -> str:
        if found.refusal is None:
            return self._case(found, _COMPARABLE)
        self.numbers["errors"] += 1
        return self._case(found, _COMPARABLE, f'<error message={_quoted(found.refusal)} type="refused"/>')

    def _class(self, found: Difference, kind: Kind) -> str:
        if found.refusal is not None or (kind.startswith("log") and not found.rules.logs):
            self.numbers["skipped"] += 1
            why = "the runs are not diffed" if found.refusal is not None else "log records are not compared"
            return self._case(found, WORDS[kind], f"<skipped message={_quoted(why)}/>")
        told = groups(change for change in found.changes if change.kind == kind)
        bad = [group for group in told if not group.first.is_accepted]
        good = [_line(group) for group in told if group.first.is_accepted]
        inside = f"<system-out>{_text(good)}</system-out>" if good else ""
        if bad:
            self.numbers["failures"] += 1
            what = f"{sum(group.count for group in bad):,} {WORDS[kind]}: {bad[0].first.name}"
            lines = _text([_line(group) for group in bad])
            inside = f'<failure message={_quoted(what)} type="{kind}">{lines}</failure>{inside}'
        return self._case(found, WORDS[kind], inside)

    def _case(self, found: Difference, name: str, inside: str = "") -> str:
        self.numbers["tests"] += 1
        where = _quoted(f"spangate.diff.{found.b.name}")
        return f'<testcase classname={where} name={_quoted(name)} time="0">{inside}</testcase>'


def _line(group: Group) -> str:
    change = group.first
    said = [f"{group.word} {change.name}", f"in {change.agent}" if change.agent else "", group.what]
    said += [f"digest {group.digests}" if group.digests else "", f"span {group.where}" if group.where else ""]
    said += [f"{group.count:,} times" if group.count > 1 else "", accepted_by(change)]
    return "; ".join(part for part in said if part)


def _about(found: Difference) -> list[str]:
    """Say what no case tells of."""
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
