"""What ``spangate check`` says: text for people, with runs of one fault gathered, and JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from spangate._records import Verdict
from spangate._run import Run
from spangate._units import counted, shown
from spangate._verdict.text import one_line, verdict_text
from spangate.cli._console import style_of
from spangate.cli._timing_check import TimingCheck

MAX_NAMED_RUNS: Final = 3


class JsonReport:
    """One JSON object a run."""

    def __init__(self, clock: TimingCheck | None) -> None:
        self.failed = 0
        self._clock = clock

    def add(self, run: Run, verdict: Verdict) -> None:
        """Report one run."""
        self.failed += not verdict.passed
        timing = {} if self._clock is None else {"timing": self._clock.as_json(run, verdict)}
        click.echo(json.dumps({**as_json(verdict), **timing}))

    def close(self) -> None:
        """Say nothing more: every line is complete."""


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return what JSON says of a verdict."""
    return {
        "run_id": verdict.run_id,
        "trace_id": verdict.root.hex_trace_id,
        "root": verdict.run_name,
        "verdict": verdict.verdict,
        "trigger": verdict.trigger,
        "findings": [
            {
                "code": finding.code,
                "level": finding.level,
                "span_id": finding.span.hex_id if finding.span else None,
                "span_name": finding.span.name if finding.span else None,
                "detail": finding.detail,
            }
            for finding in verdict.findings
        ],
        "gates": dict(verdict.gates),
        "totals": asdict(verdict.totals),
        "cluster": verdict.cluster,
    }


@dataclass
class _Fault:
    """All failed runs of one cluster: what the first of them shows, and how many there are."""

    codes: list[str]
    run_ids: list[str]
    runs: int = 0


class TextReport:
    """A line or a block a run as it comes, and a summary. A fault is explained once, in the first run that shows it."""

    def __init__(self, clock: TimingCheck | None, *, verbose: bool, quiet: bool) -> None:
        self._clock = clock
        self._verbose, self._quiet = verbose, quiet
        self._style = style_of(sys.stdout)
        self._faults: dict[str | None, _Fault] = {}
        self._warnings: Counter[str] = Counter()
        self.passed = self.warned = self.failed = 0

    def add(self, run: Run, verdict: Verdict) -> None:
        """Report one run."""
        self.passed += verdict.passed
        self.failed += not verdict.passed
        self.warned += verdict.passed and bool(verdict.warnings)
        self._warnings.update({finding.code for finding in verdict.warnings})
        is_new = not verdict.passed and self._add_fault(verdict)
        timing = "" if self._clock is None else self._clock.text(run, verdict, self._style)
        if self._quiet:
            return
        if is_new or self._verbose:
            click.echo(verdict_text(verdict, run, style=self._style) + "\n")
        else:
            same = "" if verdict.passed else f" (as before: cluster {verdict.cluster})"
            click.echo(one_line(verdict) + same)
        if timing:
            click.echo(timing)

    def _add_fault(self, verdict: Verdict) -> bool:
        fault = self._faults.get(verdict.cluster)
        if fault is None:
            codes = list(dict.fromkeys(finding.code for finding in verdict.failures))
            fault = self._faults[verdict.cluster] = _Fault(codes, [])
        fault.runs += 1
        if fault.runs <= MAX_NAMED_RUNS:
            fault.run_ids.append(verdict.run_id)
        return fault.runs == 1

    def close(self) -> None:
        """Write the summary."""
        runs = self.passed + self.failed
        if not runs:
            return
        warned = f" ({self.warned:,} with warnings)" if self.warned else ""
        click.echo(
            f"{counted(runs, 'run')}: {self._style(f'{self.passed:,} passed', 'pass')}{warned}, "
            + self._style(f"{self.failed:,} failed", "fail" if self.failed else "dim")
        )
        for cluster, fault in sorted(self._faults.items(), key=lambda item: -item[1].runs):
            self._write_fault(cluster, fault)
        for code, number in self._warnings.most_common():
            click.echo(f"  {self._style('warning', 'warn')}  {shown(code)} in {counted(number, 'run')}")

    def _write_fault(self, cluster: str | None, fault: _Fault) -> None:
        named = ", ".join(shown(run_id) for run_id in fault.run_ids)
        more = f" and {fault.runs - len(fault.run_ids):,} more" if fault.runs > len(fault.run_ids) else ""
        codes = ", ".join(shown(code) for code in fault.codes)
        click.echo(f"  {self._style(f'cluster {cluster}', 'fail')}  {counted(fault.runs, 'run')}: {codes}")
        click.echo(self._style(f"           {named}{more}", "dim"))
