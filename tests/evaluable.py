"""What can be evaluated with each instrumentation, worked out from recorded healthy runs: the README's table.

``python -m tests.evaluable`` writes it into the README, between its two marks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from spangate import Run, Verdict, default_gates, judge
from spangate._dialects import dialect_of
from spangate._dialects._base import Request
from spangate._fingerprint.prompt import prompt_of
from spangate._forest.recorded import recorded_runs
from spangate._names import gate_name
from spangate._records import ABSENT
from spangate._usage import count
from tests import recordings

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- evaluable: start -->", "<!-- evaluable: end -->"

# A recording's name tells the framework, what instruments it, and how content capture is set.
INSTRUMENTATIONS = {
    "": "no instrumentation",
    "def": "its own",
    "none": "its own",
    "exp": "its own, experimental conventions",
    "exptools": "its own, experimental conventions with tools",
    "nocontent": "its own, content off",
    "v2fmt": "its own, format 2",
    "genai": "OpenTelemetry GenAI",
    "genai_content": "OpenTelemetry GenAI, content on",
    "v2": "opentelemetry openai-v2",
    "v2exp_content": "opentelemetry openai-v2, experimental, content on",
    "oi": "OpenInference",
    "tl": "OpenLLMetry",
}
HEALTHY = ("basic", "root")
NAMES = [gate_name(gate) for gate in default_gates()]
FACTS: tuple[tuple[str, Callable[[Request], object]], ...] = (
    ("prompt", prompt_of),
    ("model", lambda request: request.model),
    ("temperature", lambda request: request.temperature),
    ("tools", lambda request: request.tools),
)


def table() -> str:
    """Return the table in Markdown, and below it why something is not evaluable."""
    reasons: list[str] = []
    rows = [
        "| " + " | ".join(("framework", "instrumented by", *NAMES, "cited tools", "known of every model call")) + " |",
        "|---" * (len(NAMES) + 4) + "|",
    ]
    for name in recordings.names():
        group, _, scenario = name.partition("/")
        if scenario in HEALTHY:
            framework, _, instrumentation = group.rpartition("-")
            by = INSTRUMENTATIONS["" if group == "crewai-none" else instrumentation]
            cells = (_with_reason(cell, reasons) for cell in _cells(name))
            rows.append("| " + " | ".join((framework, by, *cells)) + " |")
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*rows, "", "Not evaluable (n/e) because:", "", *notes])


def _with_reason(cell: str, reasons: list[str]) -> str:
    """Put a number in the place of a reason."""
    what, _, reason = cell.partition(": ")
    if not reason:
        return what
    if reason not in reasons:
        reasons.append(reason)
    return f"{what} ({reasons.index(reason) + 1})"


def _cells(name: str) -> Sequence[str]:
    runs, _ = recorded_runs(recordings.spans(name), starts_known=True)
    if not runs:
        return ("no run",) * (len(NAMES) + 2)
    verdicts = [judge(run, default_gates()) for run in runs]
    return (
        *(_result(verdicts, gate) for gate in NAMES),
        _cited(verdicts, runs),
        _known(runs),
    )


def _result(verdicts: Sequence[Verdict], gate: str) -> str:
    results = {verdict.gates[gate] for verdict in verdicts}
    for result in ("fail", "not_evaluable", "pass"):
        if result in results:
            break
    reasons = {gap.detail for verdict in verdicts for gap in verdict.gaps if gap.code == f"{gate}.not_evaluable"}
    return result if result != "not_evaluable" else f"n/e: {'; '.join(sorted(reasons))}"


def _cited(verdicts: Sequence[Verdict], runs: Sequence[Run]) -> str:
    gaps = {gap.detail for verdict in verdicts for gap in verdict.gaps if gap.code == "completeness.cited_tool_missing"}
    if gaps:
        return "n/e: " + "; ".join(sorted(gaps))
    cites = any(dialect_of(span).turn(span).received for run in runs for span in run.of_role("generation"))
    return "pass" if cites else "n/e: no results of tools are recorded"


def _known(runs: Sequence[Run]) -> str:
    """Say what the spans of every model call, taken together, tell of its request."""
    calls = [call for run in runs for call in count(run).calls]
    if not calls:
        return "no model calls in the trace"
    requests = [[dialect_of(span).request(span) for span in (seen.span for seen in call.sightings)] for call in calls]
    known = [
        name
        for name, fact in FACTS
        if all(any(fact(request) not in (ABSENT, None) for request in call) for call in requests)
    ]
    return ", ".join(known) or "nothing"


def write() -> None:
    """Put the table into the README."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
