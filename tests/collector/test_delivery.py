"""Nothing is lost and nothing comes twice: Collectors that restart, backends that are away or slow."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from tests.collector.conftest import WAYS, Agents, assert_all_arrived
from tests.collector.running import free_ports, running
from tests.collector.test_pipelines import SENDERS, base, guarded
from tests.otlp_sink import Sink, http_sink


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.LONGEST_PAUSE_S", 0.2)


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_a_collector_that_restarts(way: str, backend: Sink, tmp_path: Path) -> None:
    with running("plain", tmp_path, SPANGATE_BACKEND=base(backend)) as collector:
        agents = WAYS[way](collector)
        agents.released("before")
        assert agents.flush()
        collector.stop()
        for number in range(20):
            agents.released(f"meanwhile{number}")
        agents.refused("meanwhile")
        assert not agents.flush(0.5)
        collector.start()
        agents.released("after")
        assert agents.flush()
        assert_all_arrived(agents, backend)


def test_a_collector_that_is_killed_with_a_backend_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the Collector has accepted is on its disk: production.yaml has a queue there."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority"))
    (port,) = free_ports(1)
    settings = {**guarded(authority, tmp_path), "SPANGATE_BACKEND": f"http://127.0.0.1:{port}"}
    with running("production", tmp_path, **settings, SPANGATE_FIRST_RETRY="200ms") as collector:
        agents = Agents(SENDERS["http"](collector, tmp_path / "authority", "t0ken"))
        for number in range(20):
            agents.released(f"good{number}")
            agents.refused(f"bad{number}")
        assert agents.flush()
        collector.kill()
        agents.released("while nobody listens")
        collector.start()
        assert agents.flush()
        with http_sink(port) as backend:
            assert_all_arrived(agents, backend)


def test_a_slow_backend(backend: Sink, tmp_path: Path) -> None:
    backend.pause_s = 0.5
    with running("plain", tmp_path, SPANGATE_BACKEND=base(backend)) as collector:
        agents = WAYS["http"](collector)
        for number in range(300):
            agents.released(f"good{number}", tools=9)
        agents.refused()
        assert agents.flush()
        assert_all_arrived(agents, backend)
