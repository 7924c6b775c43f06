"""MLflow: refused runs found by the search of its own client, behind a real Collector."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter

from tests.backends.server import served
from tests.collector.conftest import Agents
from tests.collector.running import free_ports
from tests.environments import SECONDS, environment

pytestmark = pytest.mark.timeout(SECONDS)

SEARCH = """
import json, sys
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
found = mlflow.search_traces(locations=["0"], filter_string=sys.argv[2], return_type="list")
print(json.dumps([[trace.info.state.value, [span.name for span in trace.data.spans]] for trace in found]))
"""
"""What a user of MLflow's client writes; it runs in the environment that has it."""


class MLflow:
    """A server with three released runs and two refused ones in it, and who sent them."""

    def __init__(self, url: str, agents: Agents) -> None:
        self.url = url
        self.agents = agents

    def search(self, condition: str = "") -> list[Any]:
        """Return state and names of spans of each trace that the client finds."""
        found = environment("mlflow")
        command = [str(found.python), "-c", SEARCH, self.url, condition]
        done = subprocess.run(command, env=found.variables(PYTHONPATH=""), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        traces: list[Any] = json.loads(done.stdout.splitlines()[-1])
        return traces


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLflow]:
    folder = tmp_path_factory.mktemp("mlflow")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    with served("mlflow", command, folder, f"{url}/health", {"MLFLOW_DISABLE_TELEMETRY": "true"}):
        agents = Agents(HTTPExporter(f"{url}/v1/traces", headers={"x-mlflow-experiment-id": "0"}))
        for number in range(3):
            agents.released(f"good{number}")
        agents.refused("bad")
        agents.refused("worse")
        assert agents.flush()
        yield MLflow(url, agents)


def test_every_span_of_released_runs_and_one_verdict_for_each_refused_one(mlflow: MLflow) -> None:
    traces = mlflow.search()
    refused = [names for state, names in traces if state == "ERROR"]
    assert sorted(refused) == [["refused bad"], ["refused worse"]]
    assert sum(len(names) for state, names in traces if state != "ERROR") == len(mlflow.agents.sent.spans)


@pytest.mark.parametrize(
    "condition",
    ["trace.status = 'ERROR'", "span.attributes.spangate.verdict LIKE '%fail%'", "span.name = 'refused bad'"],
)
def test_a_search_finds_them(mlflow: MLflow, condition: str) -> None:
    names = {name for _, spans in mlflow.search(condition) for name in spans}
    assert names == ({"refused bad"} if "name" in condition else {"refused bad", "refused worse"})
