"""Cardinality: spans and runs that are too large, too many children at once, and evidence that was thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from spangate import _keys as keys
from spangate._compact.form import compact_bytes
from spangate._dialects import dialect_of
from spangate._dialects.genai import RESULT
from spangate._dialects.native import native
from spangate._payload import span_bytes
from spangate._records import ABSENT, Finding, Level, Span, not_evaluable
from spangate._run import Run
from spangate._settings import check_ceiling
from spangate._units import counted

STRICT_RUN_BYTES: Final = 32_768
"""What the compact form of a native run may weigh in strict, bytes."""
STRICT_OPEN_CHILDREN: Final = 8
"""How many children may be open at once under one span of a native run in strict."""

_NATIVE_ROOT: Final = "agent.run"
_RESULTS: Final = ("tool_payload_bytes", "after_hash", "output_hash", "result_hash")
_COMPACT_RESULTS: Final = tuple(keys.PAYLOAD_SHA256 + key for key in RESULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """Finds what is too large or too much at once, and spans that lost attributes, events or links.

    What a span lost is counted by its SDK; the stamps of this package that the SDK evicted are put back before a run
    is judged and are not among the losses.

    In strict, runs whose root is native (``agent.run``) are held to more where nothing else is declared: their compact
    form may weigh 32,768 bytes, 8 children may be open at once under one span, and results have to be there.

    Attributes:
        max_span_bytes: Ceiling on the attributes and events of one span, in bytes of UTF-8; None for no ceiling. The
            default is what a gRPC receiver takes in one message unless it is told otherwise.
        max_run_bytes: Ceiling on the same of all spans of a run together, as they were recorded.
        max_open_children: Ceiling on the children of one span that are open at the same moment, not in total. One that
            ends when the next starts makes room for it.
        require_results: Whether each call of a native run has to have its result: a tool, the value, its size or a hash
            of it; a model call that tells the hash of its input, that of its output. What failed needs none.

    Raises:
        ValueError: a ceiling that is no whole number, or is negative.
    """

    max_span_bytes: int | None = 4 << 20
    max_run_bytes: int | None = None
    max_open_children: int | None = None
    require_results: bool = False

    def __post_init__(self) -> None:
        for name in ("max_span_bytes", "max_run_bytes", "max_open_children"):
            check_ceiling(name, getattr(self, name))

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield the findings: those of single spans first, in the order of their starts."""
        ceiling = self.max_span_bytes
        for span in run.spans:
            if ceiling is not None:
                size = span_bytes(span)
                if size > ceiling:
                    yield Finding("cardinality.span_bytes", span, f"{size} bytes > {ceiling}")
            if span.dropped_attributes or span.dropped_events or span.dropped_links:
                yield Finding("cardinality.attributes_dropped", span, _losses(span))
        is_native = run.root.name == _NATIVE_ROOT and dialect_of(run.root).name == "native"
        yield from self._run_bytes(run, is_native=is_native)
        yield from self._fan_out(run, is_native=is_native)
        yield from self._results(run, is_native=is_native)

    def _run_bytes(self, run: Run, *, is_native: bool) -> Iterator[Finding]:
        ceiling = self.max_run_bytes
        if ceiling is not None:
            size = sum(span_bytes(span) for span in run.spans)
            if size > ceiling:
                yield Finding("cardinality.run_bytes", run.root, f"{size} bytes > {ceiling}", "fail")
        elif is_native:
            size = 0
            for span in run.spans:
                size += compact_bytes(span)
                if size > STRICT_RUN_BYTES:
                    detail = f"its compact form weighs more than {STRICT_RUN_BYTES} bytes"
                    yield Finding("cardinality.run_bytes", run.root, detail)
                    return

    def _fan_out(self, run: Run, *, is_native: bool) -> Iterator[Finding]:
        ceiling, level = self.max_open_children, _level(self.max_open_children is not None)
        if ceiling is None:
            if not is_native:
                return
            ceiling = STRICT_OPEN_CHILDREN
        for (trace_id, parent_id), children in run.children.items():
            if len(children) > ceiling:
                most = _most_at_once(children)
                if most > ceiling:
                    parent = run.by_id.get(trace_id, {}).get(parent_id, children[0])
                    detail = f"children open at once: {most:,} > {ceiling}"
                    yield Finding("cardinality.fan_out", parent, detail, level)

    def _results(self, run: Run, *, is_native: bool) -> Iterator[Finding]:
        if not is_native:
            if self.require_results:
                why = "the run is not native: whether others record results is up to their instrumentation"
                yield not_evaluable("cardinality.missing_result", why)
            return
        level = _level(self.require_results)
        for role in ("tool", "generation"):
            for span in run.by_role.get(role, ()):
                if span.end_ns is not None and not _has_result(span) and dialect_of(span).outcome(span) == "ok":
                    yield Finding("cardinality.missing_result", span, f"the {role} ended without a result", level)


def _level(is_declared: bool) -> Level | None:  # noqa: FBT001  the one thing that decides
    """Return the level of a bound: what is declared fails, what only strict asks for has the level of its code."""
    return "fail" if is_declared else None


def _most_at_once(children: list[Span]) -> int:
    """Return how many spans, which stand in the order of their starts, are open at the same moment at most."""
    ends: list[float] = []
    most = 0
    for span in children:
        while ends and ends[0] <= span.start_ns:
            heappop(ends)
        heappush(ends, float("inf") if span.end_ns is None else span.end_ns)
        most = max(most, len(ends))
    return most


def _has_result(span: Span) -> bool:
    """Say whether a span of a native run that is a call tells what came of it, or need not."""
    dialect, attributes = dialect_of(span), span.attributes
    if dialect.name != "native":
        return True
    if span.role == "generation":
        return native(attributes, "input_hash") is ABSENT or native(attributes, "output_hash") is not ABSENT
    if any(native(attributes, key) is not ABSENT for key in _RESULTS):
        return True
    return dialect.tool_result(span) is not ABSENT or not attributes.keys().isdisjoint(_COMPACT_RESULTS)


def _losses(span: Span) -> str:
    """Say what was lost, and by which variables the SDK is told to keep more."""
    dropped = (("attribute", span.dropped_attributes), ("event", span.dropped_events), ("link", span.dropped_links))
    lost = [(what, count) for what, count in dropped if count]
    losses = ", ".join(counted(count, what) for what, count in lost)
    limits = ", ".join(f"OTEL_SPAN_{what.upper()}_COUNT_LIMIT" for what, _ in lost)
    return f"lost {losses} to the limits of the SDK: raise {limits}, or record less"
