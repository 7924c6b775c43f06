"""A real tracer provider with a gate and an exporter in memory, and words for what goes in and comes out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, TypeAlias

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from spangate import Gate, GateSpanProcessor, Verdict
from spangate.gates import Completeness, Forest

SOON = 10.0
"""Seconds after which a condition that has not come true is a failure."""
LONG = 3600.0
"""A wait that no test lives to see the end of: what leaves nevertheless has not waited for it."""

What: TypeAlias = Literal[
    "agent", "workflow", "generation", "tool", "iteration", "process", "setup", "transport", "entry", "other"
]
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "agent": {"gen_ai.operation.name": "invoke_agent"},
    "workflow": {"gen_ai.operation.name": "invoke_workflow"},
    "generation": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"},
    "tool": {"gen_ai.operation.name": "execute_tool"},
    "iteration": {"gen_ai.operation.name": "execute_event_loop_cycle"},
    "process": {"process.executable.name": "ffmpeg", "process.exit.code": 0},
    "setup": {"gen_ai.operation.name": "create_agent"},
    "transport": {"mcp.method.name": "tools/list"},
    "entry": {},
    "other": {},
}
"""Attributes by which a span is known for what it is."""


class Unsampled:
    """Marks a parent that a sampler dropped."""


UNSAMPLED = Unsampled()
Above: TypeAlias = Span | SpanContext | None


class Gated(TracerProvider):
    """The provider under test. Settings are those of the gate; waits are short unless a test says otherwise."""

    made: ClassVar[list[Gated]] = []
    """All that have been made, for whoever shuts them down."""

    def __init__(
        self,
        *,
        exporter: SpanExporter | None = None,
        gates: Iterable[Gate] = (Completeness(), Forest()),
        provider: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(shutdown_on_exit=False, **{"resource": Resource({"service.name": "test"}), **(provider or {})})
        self.memory = InMemorySpanExporter() if exporter is None else exporter
        self.verdicts: list[Verdict] = []
        waits = {"grace_s": 0.02, "settle_s": 0.02, "on_verdict": self.verdicts.append}
        self.gate = GateSpanProcessor(self.memory, gates=gates, **{**waits, **settings})
        self.add_span_processor(self.gate)
        self.made.append(self)
        self._known: dict[str, Tracer] = {}

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **more: Any) -> Tracer:
        """Return the tracer of a scope, the same to all threads: the SDK changes warning filters at every call."""
        if args or more:
            return super().get_tracer(instrumenting_module_name, *args, **more)
        known = self._known.get(instrumenting_module_name)
        return known or self._known.setdefault(instrumenting_module_name, super().get_tracer(instrumenting_module_name))

    def start(self, what: What, name: str | None = None, under: Above = None, **more: Any) -> Span:
        """Start a span that is known as ``what`` from its start, below ``under`` (None: without a parent)."""
        return started(self, what, name, under, **more)

    @contextmanager
    def open(self, what: What, name: str | None = None, under: Above = None, **more: Any) -> Iterator[Span]:
        span = self.start(what, name, under, **more)
        yield span
        span.end()

    def ended(self, what: What, name: str | None = None, under: Above = None, **more: Any) -> Span:
        """Start a span and end it."""
        span = self.start(what, name, under, **more)
        span.end()
        return span

    def flush(self, seconds: float = SOON) -> bool:
        return self.gate.force_flush(round(seconds * 1000))

    def nudge(self) -> None:
        """Have the worker look now, as it does by itself once a second."""
        self.gate._buffer.wake()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until ``condition`` comes true."""
        deadline = time.monotonic() + SOON
        while not condition():
            assert time.monotonic() < deadline, f"{self.names} left, {self.told} told, {self.gate._buffer}"
            self.nudge()
            time.sleep(0.002)

    def until_left(self, *names: str) -> None:
        """Wait until exactly these spans have left, in whatever order."""
        self.until(lambda: len(self.exported) >= len(names))
        assert sorted(self.names) == sorted(names)

    @property
    def exported(self) -> Sequence[ReadableSpan]:
        assert isinstance(self.memory, InMemorySpanExporter)
        return self.memory.get_finished_spans()

    @property
    def names(self) -> list[str]:
        """The names of the spans that have left, in their order."""
        return [span.name for span in self.exported]

    @property
    def told(self) -> dict[str, str]:
        """What was said of each run, by the name of its root: ``pass`` or ``fail``, then the codes."""
        return {verdict.run_name: said(verdict) for verdict in self.verdicts}

    def one(self, name: str) -> ReadableSpan:
        """Return the only exported span of that name."""
        (span,) = [span for span in self.exported if span.name == name]
        return span

    def attributes(self, name: str) -> Mapping[str, Any]:
        return self.one(name).attributes or {}


class Stepped(Gated):
    """A gate without threads and with a clock of its own: it looks when it is told to."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.now = 0.0
        self.gate._worker.has_started, self.gate._worker.wants_start = True, False
        self.gate._buffer._clock = lambda: self.now

    def look(self, now: float) -> None:
        """Let it be ``now`` seconds past the beginning, and have everything settled that is over then."""
        self.now = now
        self.gate._worker._settler.tick(now)
        self.gate._sender.drain()


def started(provider: TracerProvider, what: What, name: str | None, under: Above, **more: Any) -> Span:
    if what == "entry":
        more.setdefault("kind", SpanKind.SERVER)
    scope = more.pop("scope", "test")
    attributes = {**LOOKS[what], **more.pop("attributes", {})}
    context = Context() if under is None else set_span_in_context(_span_of(under), Context())
    span = provider.get_tracer(scope).start_span(name or what, context=context, attributes=attributes, **more)
    assert isinstance(span, Span)
    return span


def _span_of(parent: Span | SpanContext) -> Any:
    return NonRecordingSpan(parent) if isinstance(parent, SpanContext) else parent


def remote(trace_id: int = 0xFEED, span_id: int = 0xBEEF) -> SpanContext:
    """The context of a span in another process."""
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def local(trace_id: int, span_id: int = 0xD00D, *, sampled: bool = True) -> SpanContext:
    """The context of a span of this process that this provider never started, or that a sampler dropped."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=flags)


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def trace_of(span: ReadableSpan) -> int:
    return context_of(span).trace_id


def link_to(span: ReadableSpan) -> Link:
    return Link(context_of(span))


def said(verdict: Verdict) -> str:
    failures = sorted({finding.code for finding in verdict.failures})
    warnings = sorted({finding.code for finding in verdict.warnings})
    return " ".join([verdict.verdict, *failures, *(f"({code})" for code in warnings)])


class Hanging(SpanExporter):
    """An exporter that does not come back until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the interface's name
        self.let_go.wait(60.0)
        return SpanExportResult.SUCCESS


class Probe(SpanExporter):
    """An exporter that answers as a test says, and notices if it is called twice at once."""

    def __init__(self, answers: Callable[[int, Sequence[ReadableSpan]], SpanExportResult | None] | None = None) -> None:
        self.calls: list[list[ReadableSpan]] = []
        self.overlaps = 0
        self._inside = 0
        self._answers = answers

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._inside += 1
        self.overlaps += self._inside > 1
        self.calls.append(list(spans))
        answer = None if self._answers is None else self._answers(len(self.calls), spans)
        self._inside -= 1
        return SpanExportResult.SUCCESS if answer is None else answer
