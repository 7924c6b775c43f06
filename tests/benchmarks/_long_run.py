"""One endless agent run as the SDK hands it over, made without the SDK's tracer: a million spans in seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from tests.benchmarks._workload import AGENT, ANSWERS, GENERATION, SENT, TOOL, TURNS

_SCOPE: Final = InstrumentationScope("opentelemetry.instrumentation.genai.openai", "1.0")
_RESOURCE: Final = Resource.create({"service.name": "benchmark"})
_TRACE_ID: Final = 0xA11CE
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_UNSET: Final = Status(StatusCode.UNSET)
_BEGIN: Final = 1_700_000_000_000_000_000
_END: Final = 1_800_000_000_000_000_000
_MAX_LISTED: Final = 128
_STEP_NS: Final = 1_000_000
_TURN_NS: Final = 100_000
_HELPER_EVERY: Final = 10
_HELPER_TURNS: Final = 4


def long_run(*, with_messages: bool) -> Iterator[ReadableSpan]:
    """Yield the spans of a healthy run in the order of their starts, for as long as they are wanted.

    An agent goes through iterations, each a model call and a tool; every tenth tool is an agent of its own that makes
    four turns. Only model calls have attributes that no other span has.
    """
    make = _Maker(with_messages=with_messages)
    root = make.span("invoke_agent planner", None, _BEGIN, _END, make.agent)
    yield root
    for number in itertools.count():
        begin = _BEGIN + (number + 1) * _STEP_NS
        step = make.span("step", root, begin, begin + _STEP_NS - 1, make.step)
        yield step
        yield make.generation(step, begin + 1, number % TURNS)
        tool = make.tool(step, begin + 2 * _TURN_NS, begin + _STEP_NS - 2, number % TURNS)
        yield tool
        if number % _HELPER_EVERY == 0:
            yield from _helper(make, tool, begin + 3 * _TURN_NS)


def _helper(make: _Maker, tool: ReadableSpan, begin: int) -> Iterator[ReadableSpan]:
    agent = make.span("invoke_agent helper", tool, begin, begin + 5 * _TURN_NS, make.agent)
    yield agent
    for turn in range(_HELPER_TURNS):
        at = begin + turn * _TURN_NS
        yield make.generation(agent, at + 1, turn)
        yield make.tool(agent, at + _TURN_NS // 2, at + _TURN_NS - 1, turn)


class _Maker:
    """Makes the spans of one trace. Each has attributes of its own, as in the SDK."""

    def __init__(self, *, with_messages: bool) -> None:
        self._ids = itertools.count(1)
        self._with_messages = with_messages
        self.agent = AGENT
        self.step = {"gen_ai.operation.name": "execute_event_loop_cycle"}
        self._tools = [
            {**TOOL, "gen_ai.tool.call.id": f"call_{turn}", "gen_ai.tool.call.result": "42"} for turn in range(TURNS)
        ]

    def tool(self, parent: ReadableSpan, begin: int, end: int, turn: int) -> ReadableSpan:
        return self.span("execute_tool search", parent, begin, end, self._tools[turn])

    def generation(self, parent: ReadableSpan, begin: int, turn: int) -> ReadableSpan:
        attributes: dict[str, Any] = {
            **GENERATION,
            "gen_ai.response.model": "gpt-4o-2024-08-06",
            "gen_ai.response.id": f"chatcmpl-{begin}",
            "gen_ai.usage.input_tokens": 1200,
            "gen_ai.usage.output_tokens": 80,
            "gen_ai.response.finish_reasons": ("tool_calls",),
        }
        if self._with_messages:
            attributes |= {"gen_ai.input.messages": SENT[turn], "gen_ai.output.messages": ANSWERS[turn]}
        end = begin + _TURN_NS // 3
        return self.span("chat gpt-4o", parent, begin, end, attributes, SpanKind.CLIENT)

    def span(
        self,
        name: str,
        parent: ReadableSpan | None,
        begin: int,
        end: int,
        attributes: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> ReadableSpan:
        return ReadableSpan(
            name,
            context=SpanContext(_TRACE_ID, next(self._ids), is_remote=False, trace_flags=_SAMPLED),
            parent=None if parent is None else parent.context,
            resource=_RESOURCE,
            attributes=BoundedAttributes(attributes=attributes),
            events=BoundedList(_MAX_LISTED),
            links=BoundedList(_MAX_LISTED),
            kind=kind,
            status=_UNSET,
            start_time=begin,
            end_time=end,
            instrumentation_scope=_SCOPE,
        )
