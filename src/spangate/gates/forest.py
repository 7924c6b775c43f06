"""Forest: a run is one tree. One root, one trace id, every parent here, no child that starts after its parent ended.

What only the one who gathers a run can see arrives in its notes: a foreign or unsampled parent, a stray generation, an
agent that starts after its request is over, a child of a run that was already decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spangate._records import AGENT_ROLES, Finding, Span
from spangate._run import Run
from spangate._units import duration, shown

_LOOSE_ROLES: Final = AGENT_ROLES - {"agent", "workflow"}
_COARSE: Final = frozenset({"nodejs", "webjs"})
_GRAIN_NS: Final = 2_000_000
"""OpenTelemetry's SDK for JavaScript begins a span by a clock of milliseconds and ends it by a finer one, so a span may
seem to start up to that much after its parent's end (measured with sdk-node: some ten microseconds, now and then)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """Finds what splits the tree of a run or bends it.

    Attributes:
        skew_tolerance_s: Seconds by which a child on another host may seem to start after its parent's end, since two
            hosts have two clocks. On one host nothing is tolerated.

    Raises:
        ValueError: a tolerance that is negative, or no number of seconds at all.
    """

    skew_tolerance_s: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.skew_tolerance_s < math.inf:
            raise ValueError(f"skew_tolerance_s is {self.skew_tolerance_s!r}: write seconds, 0 or more")

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield the findings in the order of the spans' starts, cycles last."""
        claimed = set(run.claimed)
        traces = {run.root.trace_id, *(span.trace_id for span in run.claimed if span.parent_id is None)}
        twins = run.twins
        turned: list[Span] = []
        trace_id, in_trace = -1, {}
        for span in run.spans:
            if span.trace_id != trace_id:
                trace_id, in_trace = span.trace_id, run.by_id[span.trace_id]
                if trace_id not in traces:
                    traces.add(trace_id)
                    yield Finding("forest.multiple_trace_ids", span, f"trace {span.hex_trace_id} beside the root's own")
            if twins and span in twins:
                yield Finding("forest.duplicate_span_id", span, "another span of the run has this id")
            parent = in_trace.get(span.parent_id)
            if parent is None:
                if span is not run.root:
                    yield from _without_parent(run, span, claimed=span in claimed)
                continue
            if parent.end_ns is not None and span.start_ns > parent.end_ns:
                yield from self._late(span, parent, span.start_ns - parent.end_ns)
            if parent.start_ns >= span.start_ns:
                turned.append(span)
        yield from _cycles(run, turned)

    def _late(self, span: Span, parent: Span, late_ns: int) -> Iterator[Finding]:
        if parent.kind == "PRODUCER" or parent.role == "entry":
            return
        if _other_host(span, parent) and late_ns <= self.skew_tolerance_s * 1e9:
            return
        if late_ns <= _GRAIN_NS and _COARSE.intersection((_language(span), _language(parent))):
            return
        yield Finding(
            "forest.late_child", span, f"started {duration(late_ns)} after its parent '{shown(parent.name)}' ended"
        )


def _without_parent(run: Run, span: Span, *, claimed: bool) -> Iterator[Finding]:
    """Say why a span that is not the root has no parent in the run."""
    if span.parent_id is None:
        what = _belonging(run, span) if claimed else f"a root beside '{shown(run.root.name)}'"
        yield Finding("forest.stray_root" if claimed else "forest.multiple_roots", span, what)
    elif span.parent_remote:
        detail = f"its remote parent {span.parent_id:016x} is not in the run that it belongs to"
        yield Finding("forest.parent_outside_run", span, detail)
    elif span.parent_sampled and (claimed or not _is_loose(run, span)):
        yield Finding("forest.missing_parent", span, f"its parent {span.parent_id:016x} was never seen")


def _belonging(run: Run, root: Span) -> str:
    """Say why a tree belongs to the run that it has no parent in."""
    if root.sender_id is None:
        return "a tree of its own that belongs to this run"
    sender = run.by_id[run.root.trace_id].get(root.sender_id)
    named = "a program of this run" if sender is None else f"the program '{shown(sender.name)}' {sender.hex_id}"
    return f"a trace of its own, recorded by {named}, which ignored the context that it was given"


def _is_loose(run: Run, span: Span) -> bool:
    """Tell a model or tool call directly below a request, which has no agent above it: its parent passes on its own."""
    root = run.root
    below_request = root.role == "entry" or (
        root.role in _LOOSE_ROLES and root.parent_id is not None and not root.parent_remote and root.parent_sampled
    )
    return below_request and span.trace_id == root.trace_id and span.role in _LOOSE_ROLES


def _language(span: Span) -> object:
    language = span.resource.get("telemetry.sdk.language")
    return language if isinstance(language, str) else None


def _other_host(span: Span, parent: Span) -> bool:
    """Say whether the two spans were timed by the clocks of two hosts, as far as it is recorded."""
    if span.resource is parent.resource:
        return False
    here, there = span.resource.get("host.id"), parent.resource.get("host.id")
    return here is not None and there is not None and here != there


def _cycles(run: Run, turned: Iterable[Span]) -> Iterator[Finding]:
    """Find parents that go round. In every circle some span did not start after its parent: ``turned`` holds these."""
    clear: set[Span] = set()
    for span in turned:
        path: set[Span] = set()
        above: Span | None = span
        while above is not None and above not in clear and above not in path:
            path.add(above)
            above = run.parent_of(above)
        if above is not None and above in path:
            yield Finding("forest.parent_cycle", above, f"'{shown(above.name)}' is its own ancestor")
        clear.update(path)
