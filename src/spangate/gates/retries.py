"""Retries: a call that failed is not made again before anything can have changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spangate._attempts import is_exempt, recorded_call
from spangate._dialects import dialect_of, tool_name
from spangate._failures import FAILED
from spangate._interludes import Interludes
from spangate._lineage import LookUp, nearest
from spangate._records import Finding, Span, not_evaluable
from spangate._redaction import SECRET_KEYS, Redaction
from spangate._run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Finds calls of a tool with the version and the arguments of one that failed, with nothing in between.

    What may have changed the world in between is any span that declares ``mutates`` or names a file (``op``, ``path``),
    and any other tool or program that did not fail and does not declare ``mutates`` to be false: what a tool did
    besides answering is seen nowhere, so only a repeat at once, or after tools that declare that they change nothing,
    is certain. Calls that overlap are no retry. Interrupts, hand-offs and retries that a tool asked the model for are
    no failures. Programs record no arguments and are not compared.

    Attributes:
        exempt: Names of tools whose repeats are meant, ``*`` standing for any text.
        redact: Names of keys whose values are secret: calls that differ only there are the same call.
    """

    exempt: tuple[str, ...] = ()
    redact: tuple[str, ...] = SECRET_KEYS

    @property
    def tools_named(self) -> Iterable[str]:
        """The names of tools in the settings."""
        return self.exempt

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield each repeat, in the order in which they started within a name, then what could not be compared."""
        tools = run.of_role("tool")
        if not tools:
            yield not_evaluable("retries.not_evaluable", "the run has no tool spans")
            return
        candidates = [*self._candidates(tools)]
        if not candidates:
            return
        interludes = run.remember(Interludes)
        redaction, tool_above = Redaction(self.redact), nearest(run, lambda span: span.role == "tool")
        unknown = compared = 0
        for spans in candidates:
            history = _History(spans, redaction, tool_above, interludes)
            unknown += history.unknown
            compared += history.compared
            for span, earlier in history.retries():
                what = f"repeats {earlier.hex_id}, which failed, and nothing has changed since"
                yield Finding("retries.repeated_failure", span, what)
        if unknown:
            code = "retries.repeated_failure" if compared else "retries.not_evaluable"
            what = "recorded no arguments, so whether a call that failed was repeated cannot be told"
            yield not_evaluable(code, f"{unknown} of {unknown + compared} calls {what}")

    def _candidates(self, tools: Sequence[Span]) -> Iterator[list[Span]]:
        """Yield the calls of each tool that failed and was called again."""
        first_failure: dict[str, int] = {}
        for span in tools:
            if span.end_ns is not None and _has_failed(span):
                name = tool_name(span)
                first_failure[name] = min(first_failure.get(name, span.end_ns), span.end_ns)
        if not first_failure:
            return
        calls: dict[str, list[Span]] = {name: [] for name in first_failure if not is_exempt(name, self.exempt)}
        for span in tools:
            name = tool_name(span)
            if name in calls:
                calls[name].append(span)
        for name, spans in calls.items():
            if any(span.start_ns >= first_failure[name] for span in spans):
                yield spans


class _History:
    """The calls of one tool; those among them with the same fingerprint are the same call.

    Only those are compared between which and a failure nothing has changed: few, in a run that is well. ``unknown``
    counts those of them whose arguments are not recorded, ``compared`` the others. A call that two instrumentations
    recorded, one inside of the other, is one.
    """

    def __init__(self, spans: Sequence[Span], redaction: Redaction, tool_above: LookUp, interludes: Interludes) -> None:
        self._interludes = interludes
        self._later = {*_soon_after_failures(spans, interludes)}
        last_ns = max((span.start_ns for span in self._later), default=0)
        asked = [span for span in spans if span in self._later or (_ended_by(span, last_ns) and _has_failed(span))]
        fingerprints = {span: recorded_call(span, redaction).fingerprint for span in asked}
        self.unknown = sum(1 for fingerprint in fingerprints.values() if fingerprint is None)
        self.compared = len(fingerprints) - self.unknown
        self._same: dict[str, list[Span]] = {}
        for span, fingerprint in fingerprints.items():
            above = tool_above(span)
            is_told_above = above is not None and fingerprints.get(above) == fingerprint
            if fingerprint is not None and not is_told_above:
                self._same.setdefault(fingerprint, []).append(span)

    def retries(self) -> Iterator[tuple[Span, Span]]:
        """Yield each call before which the same call had failed and nothing has changed, with the last such call."""
        for spans in self._same.values():
            ended = sorted((span.end_ns, at) for at, span in enumerate(spans) if span.end_ns is not None)
            for span in spans:
                before = bisect_right(ended, (span.start_ns, len(spans)))
                earlier = spans[ended[before - 1][1]] if before else span
                is_after_failure = span in self._later and earlier is not span and _has_failed(earlier)
                if is_after_failure and self._interludes.none_between(earlier, span):
                    yield span, earlier


def _soon_after_failures(spans: Sequence[Span], interludes: Interludes) -> Iterator[Span]:
    """Yield the calls between which and the last failure before them nothing has changed."""
    failed = sorted((span for span in spans if _has_failed(span)), key=lambda span: span.end_ns or 0)
    ends = [span.end_ns or 0 for span in failed]
    latest = [*accumulate(failed, _later_of)]
    for span in spans:
        before = bisect_right(ends, span.start_ns)
        if before and interludes.none_between(latest[before - 1], span):
            yield span


def _later_of(one: Span, other: Span) -> Span:
    return one if one.start_ns > other.start_ns else other


def _ended_by(span: Span, time_ns: int) -> bool:
    return span.end_ns is not None and span.end_ns <= time_ns


def _has_failed(span: Span) -> bool:
    return span.end_ns is not None and dialect_of(span).outcome(span) in FAILED
