"""Plays recorded rows through a real tracer provider with the ids, times and sampling decisions that were recorded.

Nothing but the public API of the SDK is used, so what the gate exports is what a user's collector would have got.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

LIMIT = 128
"""Attributes of a span that the SDK keeps; the oldest goes first."""


class Script(IdGenerator, Sampler):
    """Hands the SDK the ids and the sampling decision of the row that is about to start."""

    def __init__(self) -> None:
        self.row: Mapping[str, Any] = {}

    def generate_span_id(self) -> int:
        return int(self.row["span"], 16)

    def generate_trace_id(self) -> int:
        return int(self.row["trace"], 16)

    def should_sample(
        self,
        parent_context: Context | None,  # noqa: ARG002  the SDK's signature
        trace_id: int,  # noqa: ARG002
        name: str,  # noqa: ARG002
        kind: SpanKind | None = None,  # noqa: ARG002
        attributes: Any = None,
        *_rest: Any,
        **_more: Any,
    ) -> SamplingResult:
        sampled = self.row.get("sampled", True)
        return SamplingResult(Decision.RECORD_AND_SAMPLE if sampled else Decision.RECORD_ONLY, attributes)

    def get_description(self) -> str:
        return "as recorded"


@dataclass
class Played:
    """What came out. ``result``: pass, fail, none (passed, no verdict), hold (nothing yet) or lost (none of these)."""

    result: str
    exported: Sequence[ReadableSpan]
    findings: set[str]
    warnings: set[str]
    counted: dict[str, int]
    breaches: list[str] = field(default_factory=list)


class Player:
    """Starts and ends spans as the rows say."""

    def __init__(self, provider: TracerProvider, script: Script) -> None:
        self._provider = provider
        self._script = script
        self._open: dict[tuple[str, str], Span] = {}
        self._latest: dict[tuple[str, str], Span] = {}
        self._starts: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.ended: set[str] = set()

    @property
    def leaks(self) -> bool:
        """True if a span was started and not ended."""
        return len(self.ended) < len(self._starts)

    def play(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            key = row.get("trace", ""), row.get("span", "")
            if row["ev"] == "start":
                self._start(key, row)
            elif row["ev"] == "end" and key in self._open:
                self._end(self._open.pop(key), self._starts[key], row)
                self.ended.add(row["span"])
            elif row["ev"] == "leak" and key in self._open:
                _set(self._open.pop(key), self._starts[key], row)  # whatever ends it now is a finalizer

    def _start(self, key: tuple[str, str], row: Mapping[str, Any]) -> None:
        self._script.row = row
        tracer = self._provider.get_tracer(row.get("scope") or "", row.get("scope_version") or None)
        span = tracer.start_span(
            row["name"],
            context=self._context(row),
            kind=SpanKind[row["kind"]],
            attributes=odd(row["attrs"]),
            links=[_link(link) for link in row.get("start_links") or ()],
            start_time=row["start_ns"],
        )
        assert isinstance(span, Span)
        self._open[key] = self._latest[key] = span
        self._starts[key] = row

    def _context(self, row: Mapping[str, Any]) -> Context:
        if not row["parent"]:
            return Context()
        parent = None if row["parent_remote"] else self._latest.get((row["trace"], row["parent"]))
        if parent is not None:
            return trace.set_span_in_context(parent, Context())
        flags = TraceFlags(TraceFlags.SAMPLED if row.get("parent_sampled", True) else TraceFlags.DEFAULT)
        elsewhere = SpanContext(int(row["trace"], 16), int(row["parent"], 16), bool(row["parent_remote"]), flags)
        return trace.set_span_in_context(NonRecordingSpan(elsewhere), Context())

    @staticmethod
    def _end(span: Span, start: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        dropped = int(row.get("dropped_attributes") or 0)
        for number in range(LIMIT - len(row["attrs"]) + dropped if dropped else 0):
            span.set_attribute(f"filler.{number}", number)
        _set(span, start, row)
        if row["name"] != start["name"]:
            span.update_name(row["name"])
        for link in (row.get("links") or ())[len(start.get("start_links") or ()) :]:
            span.add_link(_link(link).context)
        for event in row.get("events") or ():
            span.add_event(event["name"], odd(event.get("attrs") or {}), timestamp=row["end_ns"])
        if row["status"] != "UNSET":
            code = StatusCode[row["status"]]
            span.set_status(Status(code, row["status_desc"] if code is StatusCode.ERROR else None))
        span.end(row["end_ns"])


def _set(span: Span, start: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    for key, value in odd(row["attrs"]).items():
        if key not in start["attrs"] or start["attrs"][key] != row["attrs"][key]:
            span.set_attribute(key, value)


def _link(row: Mapping[str, Any]) -> trace.Link:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return trace.Link(SpanContext(int(row["trace"], 16), int(row["span"], 16), is_remote=False, trace_flags=flags))


def odd(value: Any) -> Any:
    """Turn the marks of recordings into the odd values that JSON has no words for."""
    if isinstance(value, dict):
        return {key: odd(item) for key, item in value.items()}
    if isinstance(value, list):
        return [odd(item) for item in value]
    if not isinstance(value, str):
        return value
    if value == "NaN#float":
        return float("nan")
    if value.startswith("BYTES#"):
        return "x" * int(value.removeprefix("BYTES#"))
    return "half an emoji \ud83e" if value.startswith("SURROGATE#") else value


@contextlib.contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def play(
    rows: Sequence[Mapping[str, Any]], processor: SpanProcessor, exporter: InMemorySpanExporter, trigger: str
) -> Played:
    """Play ``rows``; ``trigger`` is what makes the gate judge: root_end, force_flush or shutdown."""
    script = Script()
    limits = SpanLimits(max_span_attributes=LIMIT, max_events=LIMIT, max_links=LIMIT)
    provider = TracerProvider(sampler=script, id_generator=script, span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    player = Player(provider, script)  # keeps the spans that nobody ends
    player.play(rows)
    if trigger != "shutdown":
        processor.force_flush(10_000)
    if trigger == "shutdown" or (player.leaks and trigger != "force_flush"):
        provider.shutdown()
    exported = exporter.get_finished_spans()
    provider.shutdown()
    return outcome(rows, player.ended, exported, held=trigger == "force_flush")


def outcome(
    rows: Sequence[Mapping[str, Any]], ended: set[str], exported: Sequence[ReadableSpan], *, held: bool
) -> Played:
    """Say what the exported spans amount to, and whether a promise was broken."""
    known = Counter(row["span"] for row in rows if row["ev"] == "start")
    due = ended - {row["span"] for row in rows if not row.get("sampled", True)}
    judged = [span for span in exported if "spangate.verdict" in _attributes(span)]
    refusals = [span for span in judged if _id(span) not in known]
    passed = {_id(span) for span in exported if _id(span) in known}
    if refusals:
        result = "fail"
    elif judged:
        result = "pass"
    elif held and not passed:
        result = "hold"
    else:
        result = "none" if due <= passed else "lost"
    played = Played(
        result, exported, _codes(judged, "spangate.findings"), _codes(judged, "spangate.warnings"), _tokens(judged)
    )
    if result == "pass" and not due <= passed:
        played.breaches.append(f"released without {sorted(due - passed)}")
    for span_id, times in Counter(_id(span) for span in exported).items():
        if span_id in known and times > known[span_id]:
            played.breaches.append(f"{span_id} left {times} times")
    for refusal in refusals:
        run_id = _attributes(refusal)["spangate.run_id"]
        leaked = [_id(s) for s in exported if s is not refusal and _attributes(s).get("spangate.run_id") == run_id]
        if leaked:
            played.breaches.append(f"refused, but {leaked} left")
    return played


def _id(span: ReadableSpan) -> str:
    return format(span.context.span_id, "016x")


def _attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def _codes(judged: Sequence[ReadableSpan], key: str) -> set[str]:
    return {code for span in judged for code in _attributes(span).get(key, ())}


def _tokens(judged: Sequence[ReadableSpan]) -> dict[str, int]:
    runs: dict[tuple[str, str], int] = {}
    for span in judged:
        attributes = _attributes(span)
        for side in ("input", "output"):
            if f"spangate.{side}_tokens" in attributes:
                runs[attributes["spangate.run_id"], side] = attributes[f"spangate.{side}_tokens"]
    sums: Counter[str] = Counter()
    for (_, side), number in runs.items():
        sums[side] += number
    return dict(sums)
