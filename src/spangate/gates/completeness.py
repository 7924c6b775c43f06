"""Completeness: success means closed. Every span ended, every cited tool is here, no failure is left unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spangate._cites import cites
from spangate._cites.conversation import Call
from spangate._failures import Failure, Fate, failures, head_of
from spangate._lineage import nearest
from spangate._records import Finding, Span, not_evaluable
from spangate._run import Run
from spangate._units import duration

_CODES: Final[dict[Fate, str]] = {
    "recovered": "completeness.recovered_error",
    "tolerated": "completeness.recovered_error",
    "unrecovered": "completeness.unrecovered_error",
    "control_flow": "completeness.control_flow_error",
    "cancelled": "completeness.cancelled",
}
_STREAM: Final = "close or use up the stream or generator behind it, also when it is abandoned"
_PROGRAM: Final = "wait for the program or end it before the run is over"
_MAX_MESSAGE: Final = 120
"""Characters of a foreign error message that a detail repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Finds what is unfinished, missing or passed over in silence in a run that claims to be done."""

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield open spans first, then spans that outlived the root, failures, and cited tools without a span."""
        yield from _open(run)
        yield from _outlived(run)
        yield from _failed(run)
        yield from _cited(run)


def _open(run: Run) -> Iterator[Finding]:
    if not run.starts_known:
        why = "only ended spans were recorded: whether another one was started and never ended cannot be told"
        yield not_evaluable("completeness.not_evaluable", why)
    still_open = [span for span in run.spans if span.end_ns is None]
    if not still_open:
        return
    now_ns = max(max(span.start_ns, span.end_ns or 0) for span in run.spans)
    for span in still_open:
        age = f"started and never ended, open for at least {duration(now_ns - span.start_ns)} (scope {span.scope!r})"
        if span is run.root:
            what = (
                f"the run's root was {age} when it was judged ({run.trigger}): end it, also when the work is cut short"
            )
            yield Finding("completeness.root_open", span, what)
        else:
            yield Finding("completeness.open_span", span, f"{age}: {_PROGRAM if span.role == 'process' else _STREAM}")


def _outlived(run: Run) -> Iterator[Finding]:
    """Find work that went on after the root had ended, at the topmost span. What was handed over as a message may."""
    root_end_ns = run.root.end_ns
    if root_end_ns is None or run.root.role == "entry":
        return
    late = [span for span in run.spans if span.end_ns is not None and span.end_ns > root_end_ns >= span.start_ns]
    if not late:
        return
    heads = head_of(run)
    handed_over = nearest(run, lambda span: span.kind == "PRODUCER" or span.role == "entry")
    for span in late:
        head = heads(span) or run.root
        late_ns = _lateness_ns(span, head)
        if late_ns and not _lateness_ns(run.parent_of(span), head) and handed_over(span) is None:
            what = f"ended {duration(late_ns)} after {head.name!r} had: was it waited for?"
            yield Finding("completeness.outlived_root", span, what)


def _lateness_ns(span: Span | None, head: Span) -> int:
    if span is None or span.end_ns is None or head.end_ns is None:
        return 0
    return max(0, span.end_ns - head.end_ns)


def _failed(run: Run) -> Iterator[Finding]:
    unseen: list[Span] = []
    for failure in failures(run):
        if failure.fate == "unknown":
            unseen.append(failure.span)
        else:
            yield Finding(_CODES[failure.fate], failure.span, _what_failed(run, failure))
    if unseen:
        why = f"{len(unseen)} failed, first with {_error(unseen[0])}; without generation spans no recovery can be seen"
        yield not_evaluable("completeness.unrecovered_error", why, unseen[0])


def _what_failed(run: Run, failure: Failure) -> str:
    error = _error(failure.span)
    if failure.by is not None:
        return f"failed ({error}); {failure.by.name!r} ({failure.by.hex_id}) went on after it"
    if failure.fate == "tolerated":
        return f"failed ({error}); what called it did not fail"
    if failure.fate == "control_flow":
        return f"left by an exception that steers the run ({error})"
    if failure.fate == "cancelled":
        return f"cut short ({error})"
    return (
        f"failed ({error}), nothing healthy follows, and the root {run.root.name!r} does not say so: "
        "let the error reach the root or set its status"
    )


def _error(span: Span) -> str:
    """Name a failure by its type; by the start of its message only where no type says more, since it may hold data."""
    kinds = [span.attributes.get("error.type"), *(event.attributes.get("exception.type") for event in span.events)]
    for text in (*(kind for kind in kinds if kind != "_OTHER"), span.status_description):
        if isinstance(text, str) and text.strip():
            line = text[:_MAX_MESSAGE].strip().split("\n", 1)[0]
            return line + "…" * (len(text) > _MAX_MESSAGE)
    return "no error type recorded"


def _cited(run: Run) -> Iterator[Finding]:
    found = run.remember(cites)
    if found.blind:
        yield not_evaluable("completeness.cited_tool_missing", found.blind)
    doubtful = [call for call in found.calls if call.unchecked and (call.missing or call.lost)]
    for call in found.calls:
        if call.unchecked:
            continue
        if call.missing:
            yield Finding("completeness.cited_tool_missing", call.receiver, _what_is_missing(call))
        if call.lost:
            yield Finding("completeness.call_lost", call.asker, _what_was_lost(call))
    if doubtful:
        first = doubtful[0]
        why = f"{len(doubtful)} call(s) without a tool span are not judged, first {_named(first)}: {first.unchecked}"
        yield not_evaluable("completeness.cited_tool_missing", why, first.asker)


def _what_is_missing(call: Call) -> str:
    return (
        f"received {call.answered} result(s) of {_named(call)}, as {call.asker.name!r} ({call.asker.hex_id}) asked, "
        f"but tool spans of it: {call.executed}. Is the tool instrumented, and does it keep its context?"
    )


def _what_was_lost(call: Call) -> str:
    return (
        f"asked {call.asked} time(s) for {_named(call)}: {call.executed} ran and {call.answered} came back. "
        "Parallel calls were dropped, or merged because they share an id"
    )


def _named(call: Call) -> str:
    return repr(call.name or "a tool") + (f" (call {call.call_id!r})" if call.call_id else "")
