"""A gate on what Logfire sets up: its processors keep stamping, and what it would send at once waits for a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor, install
from tests.otlp_sink import http_sink

logfire = pytest.importorskip("logfire", reason="Logfire is not installed: pip install logfire")

AGENT = {"gen_ai.operation.name": "invoke_agent"}
TOOL = {"gen_ai.operation.name": "execute_tool"}


def configured(**settings: Any) -> Any:
    return logfire.configure(local=True, console=False, metrics=False, inspect_arguments=False, **settings)


def gate_on(vendor: Any) -> GateSpanProcessor:
    return install(vendor.config.get_tracer_provider(), grace_s=0.02, settle_s=0.02)


@pytest.fixture
def memories() -> tuple[InMemorySpanExporter, InMemorySpanExporter]:
    return InMemorySpanExporter(), InMemorySpanExporter()


@pytest.fixture
def vendor(memories: tuple[InMemorySpanExporter, InMemorySpanExporter]) -> Iterator[Any]:
    processors = [BatchSpanProcessor(memories[0]), SimpleSpanProcessor(memories[1])]
    made = configured(send_to_logfire=False, additional_span_processors=processors)
    yield made
    made.shutdown()


def healthy(vendor: Any) -> None:
    with vendor.span("good", **AGENT), vendor.span("tool", **TOOL):
        vendor.info("a word in between")


def leaky(vendor: Any) -> list[Any]:
    """Leave a tool open, and return what keeps it from being collected."""
    with vendor.span("bad", **AGENT):
        tool = vendor.span("left open", **TOOL)
        return [tool, tool.__enter__()]


def test_a_released_run_reaches_every_exporter_as_logfire_made_it(
    vendor: Any, memories: tuple[InMemorySpanExporter, InMemorySpanExporter]
) -> None:
    gate = gate_on(vendor)
    healthy(vendor)
    assert vendor.force_flush()
    for memory in memories:
        spans = {span.name: span.attributes or {} for span in memory.get_finished_spans()}
        assert list(spans) == ["tool", "a word in between", "good"]
        assert spans["good"]["spangate.verdict"] == "pass"
        assert spans["tool"]["logfire.msg"] == "tool"
        assert spans["tool"]["logfire.span_type"] == "span"
    assert gate.losses == {}


def test_a_refused_run_reaches_none_of_them(
    vendor: Any, memories: tuple[InMemorySpanExporter, InMemorySpanExporter]
) -> None:
    gate = gate_on(vendor)
    opened = leaky(vendor)
    assert gate.force_flush()
    assert vendor.force_flush()
    for memory in memories:
        assert [span.name for span in memory.get_finished_spans()] == ["refused bad"]
    assert opened


def test_installing_again_changes_nothing(vendor: Any) -> None:
    gate = gate_on(vendor)
    assert gate_on(vendor) is gate


@pytest.mark.filterwarnings("ignore:Logfire API returned status code:UserWarning")
def test_spans_that_logfire_sends_while_they_are_open_wait_too() -> None:
    with http_sink() as sink:
        advanced = logfire.AdvancedOptions(base_url=sink.endpoint.removesuffix("/v1/traces"))
        vendor = configured(send_to_logfire=True, token="pylf_v1_us_none", advanced=advanced)  # noqa: S106  nobody's
        with vendor.span("ungated"):
            pass
        gate = gate_on(vendor)
        assert sink.names == ["ungated"]
        opened = leaky(vendor)
        healthy(vendor)
        assert gate.force_flush()
        assert vendor.force_flush()
        assert sorted(sink.names) == ["a word in between", "good", "refused bad", "tool", "ungated"]
        assert opened
        vendor.shutdown()
