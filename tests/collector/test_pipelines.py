"""What each configuration does with released and refused runs, in a real Collector."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import trustme
from grpc import ssl_channel_credentials  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

from tests.collector.conftest import WAYS, Agents, assert_all_arrived, over_http, verdicts
from tests.collector.running import CONFIGURATIONS, Collector, running
from tests.otlp_sink import Sink


def base(backend: Sink) -> str:
    return backend.endpoint.removesuffix("/v1/traces")


@pytest.mark.parametrize("way", WAYS)
def test_plain_hands_on_everything(way: str, backend: Sink, tmp_path: Path) -> None:
    with running("plain", tmp_path, SPANGATE_BACKEND=base(backend)) as collector:
        agents = WAYS[way](collector)
        for number in range(5):
            agents.released(f"good{number}")
        agents.refused()
        agents.refused("worse")
        assert agents.flush()
        assert_all_arrived(agents, backend)
    names = {span.name for span in verdicts(backend.spans, "fail")}
    assert names == {"refused bad", "refused worse"}


def test_refused_runs_have_a_place_of_their_own(backend: Sink, tmp_path: Path) -> None:
    file = tmp_path / "refused.jsonl"
    with running("refused", tmp_path, SPANGATE_BACKEND=base(backend), SPANGATE_REFUSED_FILE=str(file)) as collector:
        agents = over_http(collector)
        for _ in range(3):
            agents.released()
            agents.refused()
        assert agents.flush()
        agents.until(lambda: len(backend.spans) == len(agents.sent.spans))
        agents.until(lambda: len(in_file(file)) == agents.sent.refused)
    assert verdicts(backend.spans, "fail") == []
    assert {span["name"] for span in in_file(file)} == {"refused bad"}


def in_file(path: Path) -> list[Any]:
    lines = [line for line in path.read_text().split("\n")[:-1] if line] if path.exists() else []
    return [
        span
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_runs_are_counted_by_verdict_and_finding(
    backend: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("metrics", tmp_path, SPANGATE_BACKEND=base(backend)) as collector:
        own = PeriodicExportingMetricReader(
            OTLPMetricExporter(collector.http.replace("traces", "metrics")), export_interval_millis=100
        )
        provider = MeterProvider([own], shutdown_on_exit=False)
        monkeypatch.setattr("spangate._telemetry.get_meter", provider.get_meter)
        agents = over_http(collector)
        for number in range(4):
            agents.released(f"good{number}")
        agents.refused()
        assert agents.flush()
        assert_all_arrived(agents, backend)
        page = Page(collector)
        agents.until(lambda: page.value("spangate_run_calls_total", spangate_verdict="pass") == 4)
        calls = page.value("spangate_run_calls_total", spangate_finding="completeness.open_span")
        assert calls == 1
        agents.until(lambda: page.value("spangate_runs_total", verdict="fail") == 1)
        assert page.value("spangate_findings_total", code="completeness.open_span") == 1
        assert page.value("spangate_spans_released_total") >= len(agents.sent.spans)
        assert page.value("spangate_run_duration_milliseconds_count", spangate_verdict="pass") == 4
        lost = Agents(HTTPExporter("http://127.0.0.1:1/v1/traces", timeout=0.1))
        lost.released("lost")
        lost.gate.shutdown()
        agents.until(lambda: page.value("spangate_spans_lost_total"))
        assert shown_in_grafana() - page.names() == set()
        provider.shutdown()


def shown_in_grafana() -> set[str]:
    """Return the metrics that the dashboard asks for."""
    dashboard = json.loads((CONFIGURATIONS / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return {name for expression in asked for name in re.findall(r"\bspangate_\w+(?=[{\[])", expression)}


class Page:
    """What Prometheus would read."""

    def __init__(self, collector: Collector) -> None:
        self._url = f"http://127.0.0.1:{collector.ports['SPANGATE_PROMETHEUS_PORT']}/metrics"

    def lines(self) -> list[str]:
        with urlopen(self._url) as answer:  # noqa: S310  always the loopback address
            return [line for line in answer.read().decode().splitlines() if not line.startswith("#")]

    def names(self) -> set[str]:
        """Return the names of all series."""
        return {re.split(r"[{ ]", line)[0] for line in self.lines()}

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the series of that name with these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        named = [line for line in self.lines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(float(line.rpartition(" ")[2]) for line in named if all(label in line for label in wanted))


def test_refused_and_warned_runs_stay_whatever_is_sampled(backend: Sink, tmp_path: Path) -> None:
    with running("sampled", tmp_path, SPANGATE_BACKEND=base(backend), SPANGATE_DECISION_WAIT="1s") as collector:
        agents = over_http(collector)
        for number in range(60):
            agents.released(f"good{number}")
        for number in range(5):
            agents.refused(f"bad{number}")
            warned(agents, f"warned{number}")
        assert agents.flush()
        wanted = {f"refused bad{number}" for number in range(5)} | {f"warned{number}" for number in range(5)}
        agents.until(lambda: wanted <= set(backend.names))
    runs = Counter(span.trace_id for span in backend.spans if span.name.startswith("good"))
    assert set(runs.values()) <= {4}  # whole, or not at all
    assert len(runs) < 30


def warned(agents: Agents, name: str) -> None:
    """Run an agent one of whose tools ends after it, in time."""
    agent = agents.start("agent", name)
    tool = agents.start("tool", f"{name}/slow", under=agent)
    agent.end()
    tool.end()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_production_takes_what_has_the_token_over_tls(
    protocol: str, backend: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # which requests prefers to the exporter's own setting
        monkeypatch.delenv(variable, raising=False)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority"))
    with running("production", tmp_path, **guarded(authority, tmp_path), SPANGATE_BACKEND=base(backend)) as collector:
        good = Agents(SENDERS[protocol](collector, tmp_path / "authority", "t0ken"))
        good.released()
        good.refused()
        assert good.flush()
        assert_all_arrived(good, backend)
        stranger = Agents(SENDERS[protocol](collector, tmp_path / "authority", "another"))
        stranger.released("stranger")
        assert not stranger.flush()
        assert set(stranger.gate.losses) == {f"refused: {'401' if protocol == 'http' else 'UNAUTHENTICATED'}"}
    assert "stranger" not in backend.names


def guarded(authority: trustme.CA, folder: Path) -> dict[str, str]:
    """Return the settings of a Collector with a certificate of ``authority`` and a token."""
    certificate = authority.issue_cert("localhost")
    certificate.private_key_pem.write_to_path(str(folder / "key"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "certificate"))
    return {
        "SPANGATE_CERTIFICATE": str(folder / "certificate"),
        "SPANGATE_KEY": str(folder / "key"),
        "SPANGATE_TOKEN": "t0ken",
        "SPANGATE_QUEUE": str(folder / "queue"),
    }


def _http(collector: Collector, authority: Path, token: str) -> HTTPExporter:
    url = f"https://localhost:{collector.ports['SPANGATE_HTTP_PORT']}/v1/traces"
    return HTTPExporter(url, certificate_file=str(authority), headers={"Authorization": f"Bearer {token}"}, timeout=2.0)


def _grpc(collector: Collector, authority: Path, token: str) -> GRPCExporter:
    return GRPCExporter(
        endpoint=f"https://localhost:{collector.ports['SPANGATE_GRPC_PORT']}",
        credentials=ssl_channel_credentials(authority.read_bytes()),
        headers=(("authorization", f"Bearer {token}"),),
        timeout=2.0,
    )


SENDERS: dict[str, Callable[[Collector, Path, str], Any]] = {"http": _http, "grpc": _grpc}
