"""What a page says of a run in words: why it was refused, what one quotes of it, and what is not in the page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from spangate._records import Finding, Verdict
from spangate._timing import times
from spangate._units import counted, duration
from spangate._verdict.advice import ADVICE
from spangate.cli._report.data import Judged
from spangate.cli._report.tree import begin_of
from spangate.cli._report.used import size_of


def reasons(verdict: Verdict) -> Iterator[str]:
    """Say in words why a run was refused, or what its pass rests on."""
    meanings = dict.fromkeys(_meaning(finding) for finding in verdict.failures)
    if meanings:
        first, *others = meanings
        yield first[:1].upper() + first[1:] + "."
        if others:
            yield f"And {counted(len(others), 'more kind')} of fault."
        return
    results = [*verdict.gates.values()]
    yield f"{counted(results.count('pass'), 'gate')} found nothing wrong."
    if blind := results.count("not_evaluable"):
        yield f"{counted(blind, 'gate')} had no evidence to judge by, which is no pass."
    if verdict.warnings:
        yield f"{counted(len(verdict.warnings), 'warning')}."


def _meaning(finding: Finding) -> str:
    advice = ADVICE.get(finding.code)
    return f"{finding.code}: {finding.detail}" if advice is None else advice.meaning


def facts(judged: Judged) -> Iterator[tuple[str, str]]:
    verdict, root = judged.verdict, judged.run.root
    account = judged.run.remember(times)
    began = datetime.fromtimestamp(begin_of(account, judged.run.spans) / 1e9, timezone.utc)
    yield "Took", "" if account.blind else duration(account.wall_ns)
    yield "Spans", size_of(verdict)
    yield "Began", f"{began:%Y-%m-%d %H:%M:%S} UTC"
    yield "Run", verdict.run_id
    yield "Trace", root.hex_trace_id
    yield "Policy", verdict.policy
    yield "Cluster", verdict.cluster or ""
    yield "Supersedes", verdict.supersedes or ""


def notes(rows: int, details: int) -> Iterator[str]:
    """Say what is not in the page."""
    if rows:
        yield f"{counted(rows, 'span')} folded away, so that the page stays small: rows say how many are below them."
    if details:
        yield (
            f"Attributes and events of {counted(details, 'span')} are left out, so that the page stays small."
            " They are in the recording."
        )
