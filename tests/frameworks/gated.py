"""The front door: a tracer provider with a gate on it, and what left it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from spangate import GateSpanProcessor

Tokens = tuple[int, int]
"""Input and output tokens."""


@dataclass(frozen=True)
class Account:
    """What the span that bears a verdict says of its run. Tokens are None where they cannot be summed up.

    What is known of requests is left out: ``test_fingerprints.py`` is about that, and most requests here are silent.
    """

    verdict: str
    findings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tokens: Tokens | None = None


def passed(tokens: Tokens | None, *warnings: str) -> Account:
    """Make the account of a released run."""
    return Account("pass", (), warnings, tokens)


class Gated:
    """A provider with a gate in front of an exporter that keeps what it gets. ``grace_s`` is the gate's, in seconds."""

    def __init__(self, grace_s: float) -> None:
        self._exporter = InMemorySpanExporter()
        self._witness = _Witness()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self._witness)
        self.gate = GateSpanProcessor(self._exporter, grace_s=grace_s, settle_s=0.02)
        self.provider.add_span_processor(self.gate)

    @property
    def tracer(self) -> Tracer:
        """The tracer that the program itself uses."""
        return self.provider.get_tracer("app")

    @property
    def ended(self) -> Sequence[ReadableSpan]:
        """The spans that have ended under the provider, seen beside the gate."""
        return self._witness.ended

    def exported(self) -> Sequence[ReadableSpan]:
        """Have everything judged that can be judged, and return all that has left so far."""
        assert self.provider.force_flush()
        return self._exporter.get_finished_spans()

    def released(self) -> Account:
        """Check that one run was released whole, and return its account."""
        (account,) = self.released_runs()
        return account

    def released_runs(self) -> list[Account]:
        """Check that every span that ended has left once, each run with its root last, and return their accounts."""
        runs: dict[Any, list[ReadableSpan]] = {}
        for span in self.exported():
            runs.setdefault(attribute(span, "run_id"), []).append(span)
        assert Counter(_id(span) for spans in runs.values() for span in spans) == Counter(map(_id, self.ended))
        for spans in runs.values():
            assert [span.parent for span in spans].index(None) == len(spans) - 1
            assert len({span.context.trace_id for span in spans}) == 1
        return [_account(spans[-1]) for spans in runs.values()]

    def refused(self) -> Account:
        """Check that nothing left but the verdict on one run, and return its account."""
        (span,) = self.exported()
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.name == "spangate"
        assert span.name.startswith("refused ")
        return _account(span)


class _Witness(SpanProcessor):
    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


def attribute(span: ReadableSpan, name: str) -> Any:
    """Return what the gate wrote on a span, or None."""
    return (span.attributes or {}).get(f"spangate.{name}")


def _account(span: ReadableSpan) -> Account:
    tokens = attribute(span, "input_tokens"), attribute(span, "output_tokens")
    return Account(
        attribute(span, "verdict"),
        tuple(attribute(span, "findings")),
        tuple(code for code in attribute(span, "warnings") if not code.startswith("fingerprints.")),
        None if None in tokens else tokens,
    )


def _id(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id
