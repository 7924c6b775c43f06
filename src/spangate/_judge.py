"""From a run and gates to a verdict: asks every gate, weighs what it found by the policy, and names the fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Final

from spangate._names import gate_name
from spangate._records import Finding, Gate, GateResult, Totals, Verdict
from spangate._run import Run
from spangate._usage import count
from spangate._verdict.digests import cluster, policy_digest
from spangate._verdict.levels import Policy, split
from spangate.gates.encoding import Encoding

__all__ = ["ALWAYS", "Panel", "gate_name", "judge", "policy_digest"]

ALWAYS: Final[tuple[Gate, ...]] = (Encoding(),)
"""The gates that run whatever else is configured."""

_WEIGHT: Final[Mapping[GateResult, int]] = {"pass": 0, "not_evaluable": 1, "fail": 2}


class Panel:
    """Gates made ready to judge many runs: the policy among them taken out, the others named and known by a digest.

    ``gates`` are the gates to ask, in the order of the report, and any number of policies.
    """

    def __init__(self, gates: Iterable[Gate]) -> None:
        self._policy, chosen = split(gates)
        chosen += [gate for gate in ALWAYS if gate not in chosen]
        self._gates = [(gate_name(gate), gate) for gate in chosen]
        self._names = [name for name, _ in self._gates]
        self._required = self._policy.required(dict.fromkeys(self._names))
        self._digest = policy_digest(chosen, self._policy)

    def judge(self, run: Run) -> Verdict:
        """Judge ``run``; see :func:`judge`."""
        sheet = _Sheet(self._policy, self._names)
        for note in run.notes:
            sheet.enter_note(note)
        for name, gate in self._gates:
            sheet.enter_answers(name, _answers(gate, run))
        sheet.enter_required(self._required)
        ended = sum(1 for span in run.spans if span.end_ns is not None)
        usage = count(run)
        failed = bool(sheet.failures)
        return Verdict(
            verdict="fail" if failed else "pass",
            run_id=run.run_id,
            run_name=run.name,
            trigger=run.trigger,
            root=run.root,
            findings=(*sheet.failures, *sheet.warnings),
            gaps=tuple(sheet.gaps),
            gates=sheet.results,
            totals=Totals(len(run.spans), ended, usage.input_tokens, usage.output_tokens, usage.tool_payload_bytes),
            policy=self._digest,
            cluster=cluster(sheet.failures) if failed else None,
            spans_withheld=sum(1 for span in run.spans if span.end_ns is not None and span.sampled) if failed else 0,
        )


def judge(run: Run, gates: Iterable[Gate]) -> Verdict:
    """Judge ``run`` by ``gates``.

    Pure: the same run and gates give the same verdict. It never raises because of a gate: one that does is the finding
    ``gate.error``. The level of a finding is the policy's (:class:`spangate._verdict.levels.Policy`, one of ``gates``),
    else the finding's own, else the default of its code, else ``fail``. The notes of the run are judged like findings;
    a gate of theirs that is configured answers for them.

    Args:
        run: The closed run. Its spans have their roles.
        gates: The gates to ask, in the order of the report, and any number of policies.

    Returns:
        The verdict: ``fail`` if any finding fails. Its ``spans_withheld`` counts the ended, sampled spans of a failed
        run, and ``supersedes`` is None; who releases the run knows better and may replace both.
    """
    return Panel(gates).judge(run)


class _Sheet:
    """What has been found so far, with the level in force of each finding and the result of each gate."""

    def __init__(self, policy: Policy, names: Iterable[str]) -> None:
        self.policy = policy
        self.failures: list[Finding] = []
        self.warnings: list[Finding] = []
        self.gaps: list[Finding] = []
        self.results: dict[str, GateResult] = dict.fromkeys(names, "pass")
        self._noted: set[tuple[str, int, int]] = set()

    def enter_note(self, note: Finding) -> None:
        """Enter a finding of whoever gathered the run. A gate that says the same of the same span is not heard."""
        if note.span is not None:
            self._noted.add((note.code, note.span.trace_id, note.span.span_id))
        self._enter(note.gate, note)

    def enter_answers(self, name: str, answers: Iterable[Finding]) -> None:
        """Enter what the gate ``name`` found."""
        for finding in answers:
            span = finding.span
            if span is None or (finding.code, span.trace_id, span.span_id) not in self._noted:
                self._enter(name, finding)

    def enter_required(self, required: Iterable[str]) -> None:
        """Enter a finding for each required gate that is not evaluable, or that nobody configured."""
        for name in required:
            if name not in self.results:
                self._enter("", Finding("gate.not_evaluable", None, f"{name} is required and is not configured"))
            elif self.results[name] == "not_evaluable":
                why = next((gap.detail for gap in self.gaps if gap.code == f"{name}.not_evaluable"), "it raised")
                detail = f"{name} is required and could not be evaluated: {why}"
                self._enter("", Finding("gate.not_evaluable", None, detail))

    def _enter(self, name: str, finding: Finding) -> None:
        level = self.policy.level(finding.code, finding.level)
        if level == "fail":
            self._result(name, "fail")
        elif finding.code in ("gate.error", f"{name}.not_evaluable"):
            self._result(name, "not_evaluable")
        if level == "off":
            return
        if level != finding.level:
            finding = Finding(finding.code, finding.span, finding.detail, level)
        {"fail": self.failures, "warn": self.warnings, "not_evaluable": self.gaps}[level].append(finding)

    def _result(self, name: str, result: GateResult) -> None:
        if name in self.results and _WEIGHT[result] > _WEIGHT[self.results[name]]:
            self.results[name] = result


def _answers(gate: Gate, run: Run) -> Iterator[Finding]:
    """Yield what the gate finds, and ``gate.error`` if it cannot go on: a gate that breaks has not passed the run."""
    try:
        for finding in gate(run):
            if not isinstance(finding, Finding):
                raise TypeError(f"a gate yields findings, not {type(finding).__name__}")  # noqa: TRY301  caught below
            yield finding
    except Exception as error:  # noqa: BLE001  anyone may write a gate; a broken one must not cost the run its verdict
        yield Finding("gate.error", None, f"{gate_name(gate)} raised {type(error).__name__}{_where(error)}")


def _where(error: BaseException) -> str:
    """Say in which line the gate broke. The message stays out: it may hold what the run was told in confidence."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" in {PurePath(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
