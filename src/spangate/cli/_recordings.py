"""From files to judged runs: what ``check`` and ``tree`` have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spangate import archive
from spangate._errors import RecordingError
from spangate._forest.recorded import recorded_runs
from spangate._judge import Panel
from spangate._records import Gate, Verdict
from spangate._run import Run
from spangate._units import counted
from spangate.cli._console import FAILED, NO_RUN, PASSED, UNREADABLE, Progress, say
from spangate.cli._named_tools import NamedTools


@dataclass
class Tally:
    """What was read so far: runs, spans, and the names of the files that could not be read."""

    runs: int = 0
    spans: int = 0
    unreadable: list[str] = field(default_factory=list)

    def exit_code(self, *, failed: bool) -> int:
        """Return the exit code, and tell on standard error if no run was found."""
        if self.unreadable:
            return UNREADABLE
        if not self.runs:
            what = f"{counted(self.spans, 'span')}, none of them of an agent" if self.spans else "nothing at all"
            say(f"no agent run in the input: there is {what}")
            return NO_RUN
        return FAILED if failed else PASSED


def judged(files: Sequence[str], gates: Sequence[Gate], tally: Tally) -> Iterator[tuple[Run, Verdict]]:
    """Read the files one after the other and judge every run in them.

    A file that cannot be read is told on standard error and in ``tally``; the others are read all the same. Tools that
    the gates name and no run has are told there, too.
    """
    panel, named = Panel(gates), NamedTools(gates)
    for name in files:
        for run, verdict in _judged(name, panel, tally):
            named.see(run)
            yield run, verdict
    for complaint in named.complaints() if tally.runs else ():
        say(complaint)


def _judged(name: str, panel: Panel, tally: Tally) -> Iterator[tuple[Run, Verdict]]:
    progress = Progress(name)

    def tell(sentence: str) -> None:
        progress.clear()
        say(sentence)

    try:
        for trace in archive.read(name, progress=progress.hook(), tell=lambda what: tell(f"note: {what}")):
            runs, _ = recorded_runs(trace.spans, trace.starts_known)
            tally.runs += len(runs)
            tally.spans += len(trace.spans)
            for run in runs:
                verdict = panel.judge(run)
                progress.clear()
                yield run, verdict
    except RecordingError as error:
        tally.unreadable.append(name)
        tell(f"error: {error}")
    except OSError as error:
        tally.unreadable.append(name)
        tell(f"error: {name}: {error.strerror or error}")
    finally:
        progress.clear()
