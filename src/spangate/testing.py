"""Test your own agent against the gate: a provider whose ids and times repeat, and assertions that say what was wrong.

Here an agent is tested that calls a model and a tool. The first run is sound; in the second, the tool is started in a
thread that knows nothing of the run:

>>> from concurrent.futures import ThreadPoolExecutor
>>> from spangate.testing import GatedProvider
>>>
>>> def cook(tracer, call):
...     with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
...         with tracer.start_as_current_span("chat small", attributes={"gen_ai.operation.name": "chat"}) as model:
...             model.set_attributes({"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3})
...         call(taste, tracer)
>>>
>>> def taste(tracer):
...     tracer.start_span("execute_tool taste", attributes={"gen_ai.operation.name": "execute_tool"}).end()
>>>
>>> with GatedProvider() as provider:
...     cook(provider.get_tracer("kitchen"), lambda tool, tracer: tool(tracer))
>>>
>>> provider.assert_released()
>>> [span.name for span in provider.released]
['chat small', 'execute_tool taste', 'invoke_agent cook']
>>> provider.verdicts[0].totals.input_tokens
12
>>> with GatedProvider() as provider, ThreadPoolExecutor() as pool:
...     cook(provider.get_tracer("kitchen"), lambda tool, tracer: pool.submit(tool, tracer).result())
>>>
>>> provider.assert_refused("forest.stray_root")
>>> [span.name for span in provider.refused]
['refused invoke_agent cook']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from spangate._adapter import SCOPE
from spangate._processor import GateSpanProcessor
from spangate._records import Gate, Verdict
from spangate._repeatable import Clock, CountingIds, timed
from spangate._units import counted
from spangate._verdict.text import verdict_text

__all__ = ["Clock", "CountingIds", "GatedProvider"]


class GatedProvider(TracerProvider):
    """A tracer provider with a gate that exports to memory.

    Hand it to whatever your agent takes its tracers from. Leaving its ``with`` block shuts it down, which judges
    everything, as at the end of a program; inside the block :meth:`settle` judges what is over. The assertions settle
    first.

    Trace, span and run ids are the same in every test (that of :func:`spangate.run` if you give it one). So are the
    times of spans that are started and ended without times of their own; events keep the real time, which the SDK lets
    nobody set from outside. Ids follow the order in which spans start: threads that race get them as they come.

    Args:
        gates: As for :class:`spangate.GateSpanProcessor`; None means the default gates.
        clock: Gives the times of spans in nanoseconds since the epoch. None: a new :class:`Clock`. For real durations
            take :func:`time.time_ns`.
        settings: The other settings of :class:`spangate.GateSpanProcessor`.
    """

    def __init__(
        self, gates: Iterable[Gate] | None = None, *, clock: Callable[[], int] | None = None, **settings: Any
    ) -> None:
        resource = Resource({"service.name": "test"})
        super().__init__(sampler=ALWAYS_ON, resource=resource, id_generator=CountingIds(), shutdown_on_exit=False)
        self._clock = Clock() if clock is None else clock
        self._verdicts: list[Verdict] = []
        self._exporter = InMemorySpanExporter()
        gate = _RepeatableGate(self._exporter, gates=gates, on_verdict=self._verdicts.append, **settings)
        self.add_span_processor(gate)

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        """Return a tracer, as every provider does; its spans take their times from the clock."""
        return timed(super().get_tracer(*args, **kwargs), self._clock)

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts so far, in the order in which the runs were judged."""
        return tuple(self._verdicts)

    @property
    def released(self) -> Sequence[ReadableSpan]:
        """The spans that were exported, each run's root last, but for verdict spans."""
        return tuple(span for span in self._exporter.get_finished_spans() if not _is_verdict(span))

    @property
    def refused(self) -> Sequence[ReadableSpan]:
        """The verdict spans that were exported in the place of refused runs."""
        return tuple(span for span in self._exporter.get_finished_spans() if _is_verdict(span))

    def settle(self) -> None:
        """Judge and export every run whose root has ended; spans that are still open are waited for (``grace_s``).

        Raises:
            AssertionError: a run is still held, since its grace is longer than half a minute.
        """
        if not self.force_flush():
            raise AssertionError("not everything could be judged in time; set grace_s to less")

    def clear(self) -> None:
        """Forget the verdicts and the exported spans, for a provider that several tests share; ids and times go on."""
        self.settle()
        self._verdicts.clear()
        self._exporter.clear()

    def assert_released(self) -> None:
        """Check that there was a run, and that every run passed.

        Raises:
            AssertionError: no run was judged, or one failed; the message is the verdict, with what to do.
        """
        self._assert_judged()
        failed = [verdict for verdict in self._verdicts if not verdict.passed]
        if failed:
            raise AssertionError(_told("refused", failed))

    def assert_refused(self, *codes: str) -> None:
        """Check that a run failed, and that each of ``codes`` is among the failures of the runs.

        Raises:
            AssertionError: no run was judged, all passed, or a code is missing; the message says what was found.
        """
        self._assert_judged()
        found = {finding.code for verdict in self._verdicts for finding in verdict.failures}
        missing = [code for code in codes if code not in found]
        if missing or not found:
            raise AssertionError(_told(f"no run failed with {', '.join(missing) or 'anything'}", self._verdicts))

    def _assert_judged(self) -> None:
        self.settle()
        if not self._verdicts:
            raise AssertionError(
                f"no run was judged: none of {counted(len(self.released), 'ended span')} is known as an agent, a model"
                " call or a tool."
                " Does the agent take its tracers from this provider, and has its root span ended?"
            )

    def __enter__(self) -> GatedProvider:
        """Start a test."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """Judge everything."""
        self.shutdown()


class _RepeatableGate(GateSpanProcessor):
    """A gate whose run ids are the same in every test."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._placer._random.seed(0)  # noqa: SLF001  nobody else should have a way to make run ids repeat


def _is_verdict(span: ReadableSpan) -> bool:
    """Tell verdict spans by the very scope of the adapter: a run traced by spangate has an equal one."""
    return span.instrumentation_scope is SCOPE


def _told(what: str, verdicts: Iterable[Verdict]) -> str:
    return "\n\n".join([what, *(verdict_text(verdict) for verdict in verdicts)])
