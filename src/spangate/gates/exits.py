"""Exits: every program that a run started has one span and one exit, and both tell the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spangate._dialects import dialect_of
from spangate._exits import ExitReport, exit_report
from spangate._failures import FAILED
from spangate._lineage import nested
from spangate._records import Finding, Span, not_evaluable
from spangate._run import Run
from spangate._settings import check_ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class Exits:
    """Finds programs that no span tells of, spans whose program nobody saw end, and spans that tell it wrongly.

    Exits are watched where programs are started through :mod:`spangate.process`, or after its ``instrument()``. A span
    of a program that was written by others, or in another process, is held to its own ``process.exit.code``.

    Attributes:
        max_exits: How many programs a run may start; None for no ceiling.
        max_error_exits: How many of them may end with anything but 0; None for no ceiling.
        process_tools: Names of tools that stand for the program they start: one that does not fail though its last
            program did fails the run (``tool_disagrees``). For all other tools that is a warning: a search that finds
            nothing ends with 1 and has not failed.

    Raises:
        ValueError: a ceiling that is no whole number, or is negative.
    """

    max_exits: int | None = None
    max_error_exits: int | None = None
    process_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ceiling("max_exits", self.max_exits)
        check_ceiling("max_error_exits", self.max_error_exits)

    @property
    def tools_named(self) -> Iterable[str]:
        """The names of tools in the settings."""
        return self.process_tools

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield what does not join, then what is too much, then tools that contradict their programs."""
        report = exit_report(run)
        yield from _unjoined(report)
        yield from self._ceilings(run, report)
        yield from self._disagreeing_tools(run)
        if not report.is_watched and report.close_count:
            what = "a recording has no exits but those that spans tell: one without a span cannot be seen"
            yield not_evaluable("exits.leak", what)

    def _ceilings(self, run: Run, report: ExitReport) -> Iterator[Finding]:
        counts = (
            (report.exit_count, self.max_exits, "programs"),
            (report.error_count, self.max_error_exits, "programs that failed"),
        )
        for count, ceiling, what in counts:
            if ceiling is not None and count > ceiling:
                yield Finding("exits.ceiling", run.root, f"{count} {what} > {ceiling}")

    def _disagreeing_tools(self, run: Run) -> Iterator[Finding]:
        last: dict[Span, Span] = {}
        programs = [span for span in run.of_role("process") if span.end_ns is not None]
        for program, tool in nested(run, programs, "tool", {"process", "agent"}):
            if tool not in last or (last[tool].end_ns or 0) <= (program.end_ns or 0):
                last[tool] = program
        for tool, program in last.items():
            if tool.end_ns is None or dialect_of(program).outcome(program) not in FAILED:
                continue
            if dialect_of(tool).outcome(tool) == "ok":
                what = f"is not failed, but {program.name} in it failed"
                yield Finding("exits.tool_disagrees", tool, what, "fail" if self._names(tool) else None)

    def _names(self, tool: Span) -> bool:
        call = dialect_of(tool).tool_call(tool)
        return call.name in self.process_tools or tool.name in self.process_tools


def _unjoined(report: ExitReport) -> Iterator[Finding]:
    for row in report.leaks:
        what = f"a program ended with {row.code}, and no span has its invocation id {row.invocation_id}"
        yield Finding("exits.leak", None, what)
    for span in report.orphans:
        yield Finding("exits.orphan", span, "claims a program that nobody saw end")
    for wrong in report.status_mismatches:
        what = f"says {wrong.told}, but the program ended with {wrong.code}, which is {wrong.expected}"
        yield Finding("exits.status_mismatch", wrong.span, what)
    for invocation_id in report.duplicates:
        yield Finding("exits.duplicate_invocation", None, f"{invocation_id} stands for more than one program")
