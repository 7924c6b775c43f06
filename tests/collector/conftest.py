"""A backend that keeps what a Collector sends it, and agents behind a gate that sends to the Collector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter

from tests.collector.running import Collector
from tests.live.gated import Gated
from tests.otlp_sink import Sink, http_sink, plain


@pytest.fixture
def backend() -> Iterator[Sink]:
    with http_sink() as sink:
        yield sink


@dataclass
class Sent:
    """What a gate was given: the ids of the spans of released runs, and how many runs it refused."""

    spans: set[bytes] = field(default_factory=set)
    refused: int = 0


class Agents(Gated):
    """Runs agents behind a gate that exports to a Collector, and keeps account of what has to arrive."""

    def __init__(self, exporter: Any, **settings: Any) -> None:
        super().__init__(exporter=exporter, **settings)
        self.sent = Sent()

    def released(self, name: str = "good", tools: int = 3, attributes: Mapping[str, Any] | None = None) -> None:
        """Run an agent that is believed."""
        with self.open("agent", name) as agent:
            spans = [agent, *(self.ended("tool", f"{name}/{number}", under=agent) for number in range(tools))]
            agent.set_attributes(attributes or {})
        self.sent.spans |= {span.context.span_id.to_bytes(8, "big") for span in spans if span.context}

    def refused(self, name: str = "bad") -> None:
        """Run an agent that leaves a tool open."""
        agent = self.start("agent", name)
        self.start("tool", f"{name}/leaked", under=agent)
        agent.end()
        self.sent.refused += 1


def over_http(collector: Collector, **settings: Any) -> Agents:
    return Agents(HTTPExporter(collector.http, timeout=2.0, **settings))


def over_grpc(collector: Collector, **settings: Any) -> Agents:
    return Agents(GRPCExporter(endpoint=collector.grpc, timeout=2.0, **settings))


WAYS = {
    "http": over_http,
    "http, gzip": lambda collector: over_http(collector, compression=Compression.Gzip),
    "grpc": over_grpc,
}


def verdicts(spans: Sequence[Any], verdict: str) -> list[Any]:
    """Return the spans that bear that verdict."""
    return [span for span in spans if ("spangate.verdict", verdict) in attributes(span).items()]


def attributes(span: Any) -> dict[str, Any]:
    return {pair.key: plain(pair.value) for pair in span.attributes if not isinstance(plain(pair.value), list)}


def assert_all_arrived(agents: Agents, backend: Sink) -> None:
    """Check that each span of released runs arrived once, and one verdict span for each refused run."""
    agents.until(lambda: len(backend.spans) >= len(agents.sent.spans) + agents.sent.refused)
    refusals = verdicts(backend.spans, "fail")
    released = [span.span_id for span in backend.spans if span not in refusals]
    print(  # noqa: T201  whoever runs this with -s wants the counts
        f"released spans sent {len(agents.sent.spans)} = received {len(released)}, "
        f"refused runs {agents.sent.refused} = verdicts {len(refusals)}"
    )
    assert sorted(released) == sorted(agents.sent.spans)
    assert len(refusals) == agents.sent.refused
    assert agents.gate.losses == {}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Gated.made:
        Gated.made.pop().gate.shutdown()
