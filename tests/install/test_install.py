"""A gate on providers that others have set up: everything leaves through it, and their processors go on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import ProxyTracerProvider

from spangate import GateSpanProcessor, SpangateError, install
from tests.live.gated import started

SOON_MS = 10_000
LONG = 3600.0


class Stamper(SpanProcessor):
    """A vendor's processor that writes on spans when they start, whatever becomes of them."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002  the interface's
        span.set_attribute("vendor.stamp", "yes")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  the interface's
        return True


class Wrapper(SpanProcessor):
    """A vendor's processor around another one, as vendors build them."""

    def __init__(self, inside: SpanProcessor) -> None:
        self.processor = inside

    def on_end(self, span: ReadableSpan) -> None:
        self.processor.on_end(span)

    def shutdown(self) -> None:
        self.processor.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.processor.force_flush(timeout_millis)


class Several(SpanProcessor):
    """A vendor's processor over a list of others."""

    def __init__(self, *inside: SpanProcessor) -> None:
        self.inside = list(inside)

    def on_end(self, span: ReadableSpan) -> None:
        for processor in self.inside:
            processor.on_end(span)

    def shutdown(self) -> None:
        for processor in self.inside:
            processor.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        flushed = [processor.force_flush(timeout_millis) for processor in self.inside]
        return all(flushed)


SetUp = Callable[[SpanExporter], SpanProcessor]
SET_UPS: dict[str, SetUp] = {
    "batch": BatchSpanProcessor,
    "simple": SimpleSpanProcessor,
    "wrapped batch": lambda exporter: Wrapper(BatchSpanProcessor(exporter)),
    "wrapped twice": lambda exporter: Wrapper(Wrapper(SimpleSpanProcessor(exporter))),
    "a list": lambda exporter: Several(Stamper(), BatchSpanProcessor(exporter)),
}


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    yield made
    made.shutdown()


def healthy(provider: TracerProvider, name: str = "good", tools: int = 1) -> None:
    agent = started(provider, "agent", name, None)
    for number in range(tools):
        started(provider, "tool", f"{name}/{number}", agent).end()
    agent.end()


def leaky(provider: TracerProvider, name: str = "bad") -> None:
    agent = started(provider, "agent", name, None)
    started(provider, "tool", f"{name}/open", agent)
    agent.end()


def installed(provider: Any, **settings: Any) -> GateSpanProcessor:
    return install(provider, **{"grace_s": 0.02, "settle_s": 0.02, **settings})


def names(memory: InMemorySpanExporter) -> list[str]:
    return [span.name for span in memory.get_finished_spans()]


@pytest.mark.parametrize("set_up", SET_UPS.values(), ids=SET_UPS)
def test_everything_leaves_through_the_gate_and_to_where_it_went_before(
    provider: TracerProvider, set_up: SetUp
) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(Stamper())
    provider.add_span_processor(set_up(memory))
    tracer_of_before = provider.get_tracer("before")
    healthy(provider, "history")
    gate = installed(provider)
    assert sorted(names(memory)) == ["history", "history/0"]
    memory.clear()
    healthy(provider)
    leaky(provider)
    tracer_of_before.start_span("plain").end()
    assert provider.force_flush(SOON_MS)
    assert Counter(names(memory)) == Counter(["good/0", "good", "refused bad", "plain"])
    assert all((span.attributes or {})["vendor.stamp"] for span in memory.get_finished_spans() if "good" in span.name)
    assert gate.losses == {}


def test_all_exporters_get_everything(provider: TracerProvider) -> None:
    memories = [InMemorySpanExporter() for _ in range(3)]
    provider.add_span_processor(BatchSpanProcessor(memories[0]))
    provider.add_span_processor(SimpleSpanProcessor(memories[1]))
    installed(provider, exporter=memories[2])
    healthy(provider)
    leaky(provider)
    assert provider.force_flush(SOON_MS)
    for memory in memories:
        assert sorted(names(memory)) == ["good", "good/0", "refused bad"]


def test_an_exporter_that_hangs_on_two_processors_is_taken_once(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    for _ in range(2):
        provider.add_span_processor(SimpleSpanProcessor(memory))
    installed(provider)
    healthy(provider)
    assert provider.force_flush(SOON_MS)
    assert names(memory) == ["good/0", "good"]


class Down(SpanExporter):
    """A vendor that is down."""

    def __init__(self, answer: Callable[[], SpanExportResult]) -> None:
        self._answer = answer

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the interface's name
        return self._answer()


def _raise() -> SpanExportResult:
    raise RuntimeError("the vendor's own")


@pytest.mark.parametrize("answer", [lambda: SpanExportResult.FAILURE, _raise], ids=["refuses", "raises"])
@pytest.mark.parametrize("first", [True, False], ids=["down first", "down last"])
def test_a_vendor_that_is_down_costs_the_other_nothing(
    provider: TracerProvider,
    answer: Callable[[], SpanExportResult],
    first: bool,  # noqa: FBT001  a column
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.001)
    memory = InMemorySpanExporter()
    for exporter in [Down(answer), memory] if first else [memory, Down(answer)]:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    gate = installed(provider)
    healthy(provider, tools=600)
    leaky(provider)
    assert not gate.force_flush(SOON_MS)
    told = {span.name: (span.attributes or {}).get("spangate.verdict") for span in memory.get_finished_spans()}
    assert len(told) == 602
    assert (told["good"], told["refused bad"]) == ("pass", "fail")
    assert sum(gate.losses.values()) >= 602  # by the one that is down


def test_a_vendor_that_hangs_costs_the_other_no_time(provider: TracerProvider) -> None:
    memory, let_go = InMemorySpanExporter(), threading.Event()
    arrived = threading.Event()

    def hang() -> SpanExportResult:
        let_go.wait(60.0)
        return SpanExportResult.SUCCESS

    class Told(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            memory.export(spans)
            arrived.set()
            return SpanExportResult.SUCCESS

    provider.add_span_processor(SimpleSpanProcessor(Down(hang)))
    provider.add_span_processor(SimpleSpanProcessor(Told()))
    gate = installed(provider)
    healthy(provider)
    assert arrived.wait(10.0)
    assert not gate.force_flush(50)
    assert names(memory) == ["good/0", "good"]
    let_go.set()
    assert gate.force_flush(SOON_MS)


# Which provider


def test_without_a_provider_it_is_the_global_one(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    installed(None)
    leaky(provider)
    assert provider.force_flush(SOON_MS)
    assert names(memory) == ["refused bad"]


def test_a_provider_that_a_vendor_has_wrapped_is_found(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    installed(SimpleNamespace(provider=SimpleNamespace(provider=provider)))
    leaky(provider)
    assert provider.force_flush(SOON_MS)
    assert names(memory) == ["refused bad"]


@pytest.mark.parametrize("none", [ProxyTracerProvider(), trace.NoOpTracerProvider(), object()])
def test_without_an_sdk_provider_it_says_what_to_do(none: Any) -> None:
    with pytest.raises(SpangateError, match=r"no tracer provider of the OpenTelemetry SDK .* pass the provider"):
        install(none)


def test_without_an_exporter_it_says_what_to_do(provider: TracerProvider) -> None:
    with pytest.raises(SpangateError, match="no exporter to take over: pass one"):
        install(provider)


def test_an_exporter_that_is_given_is_enough(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    installed(provider, exporter=memory)
    leaky(provider)
    assert provider.force_flush(SOON_MS)
    assert names(memory) == ["refused bad"]


@pytest.mark.parametrize("settings", [{"grace_s": -1.0}, {"max_held_bytes": 0}, {"unit": "span"}])
def test_a_setting_out_of_range_leaves_the_provider_as_it_was(
    provider: TracerProvider, settings: dict[str, Any]
) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with pytest.raises(ValueError, match=next(iter(settings))):
        install(provider, **settings)
    leaky(provider)
    assert names(memory) == ["bad"]


def test_installing_again_changes_nothing(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(BatchSpanProcessor(memory))
    gate = installed(provider)
    assert installed(provider) is gate
    assert install(provider, exporter=InMemorySpanExporter()) is gate
    healthy(provider)
    assert provider.force_flush(SOON_MS)
    assert names(memory) == ["good/0", "good"]


def test_a_vendors_shutdown_shuts_the_gate_down_too(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(BatchSpanProcessor(memory))
    installed(provider, settle_s=LONG)
    healthy(provider)
    started(provider, "agent", "open", None)
    provider.shutdown()
    assert sorted(names(memory)) == ["good", "good/0", "refused open"]


# While it happens


def test_what_ends_while_it_is_installed_is_not_lost(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()

    class Busy(SimpleSpanProcessor):
        """Meets the ends of spans just when the exporters have moved and the gate is not there yet."""

        def __init__(self) -> None:
            super().__init__(memory)
            self.flushes = 0

        def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  the interface's name
            self.flushes += 1
            return True

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "span_exporter" and value is not memory:
                healthy(provider, "meanwhile")

    busy = Busy()
    provider.add_span_processor(busy)
    gate = installed(provider)
    assert busy.flushes == 2
    assert provider.force_flush(SOON_MS)
    assert sorted(names(memory)) == ["meanwhile", "meanwhile/0"]
    assert all((span.attributes or {}).get("spangate.run_id") for span in memory.get_finished_spans())
    assert gate.losses == {}


def test_threads_that_work_while_it_is_installed_lose_nothing(provider: TracerProvider) -> None:
    memory = InMemorySpanExporter()
    provider.add_span_processor(BatchSpanProcessor(memory, max_queue_size=1 << 20, schedule_delay_millis=1))
    stop = threading.Event()
    done: list[int] = [0, 0, 0]

    def work(number: int) -> None:
        while not stop.is_set():
            started(provider, "other", f"{number}.{done[number]}", None).end()
            done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    gate = installed(provider)
    stop.set()
    for thread in threads:
        thread.join()
    assert provider.force_flush(SOON_MS)
    assert Counter(names(memory)) == Counter(f"{number}.{one}" for number in range(3) for one in range(done[number]))
    assert gate.losses == {}


def test_a_vendor_that_cannot_be_flushed_is_gated_all_the_same(provider: TracerProvider) -> None:
    class Broken(SimpleSpanProcessor):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            raise RuntimeError(f"the vendor's own, after {timeout_millis} ms")

    memory = InMemorySpanExporter()
    provider.add_span_processor(Broken(memory))
    gate = installed(provider)
    leaky(provider)
    assert gate.force_flush(SOON_MS)
    assert names(memory) == ["refused bad"]


# Ways round the gate


def test_an_exporter_beside_the_gate_is_named_once(provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
    gate = GateSpanProcessor(InMemorySpanExporter(), grace_s=0.02, settle_s=0.02)
    provider.add_span_processor(gate)
    healthy(provider)
    assert "past the gate" not in caplog.text
    provider.add_span_processor(Stamper())
    provider.add_span_processor(Wrapper(BatchSpanProcessor(InMemorySpanExporter())))
    for _ in range(3):
        healthy(provider)
    assert caplog.text.count("Wrapper exports past the gate, to InMemorySpanExporter") == 1
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    healthy(provider)
    assert caplog.text.count("past the gate") == 2
    assert caplog.text.count("SimpleSpanProcessor exports past the gate") == 1


def test_what_was_taken_over_is_no_way_round_the_gate(
    provider: TracerProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    installed(provider)
    healthy(provider)
    assert "past the gate" not in caplog.text
