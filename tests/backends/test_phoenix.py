"""Phoenix: refused runs found by its REST and GraphQL interfaces and on its page, behind a real Collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter
from opentelemetry.sdk.resources import Resource

from tests.backends.server import served
from tests.collector.conftest import Agents
from tests.collector.running import free_ports, running
from tests.environments import SECONDS
from tests.report.browser import opened

pytestmark = pytest.mark.timeout(SECONDS)

PROJECT = "agents"


@dataclass(frozen=True)
class Phoenix:
    """A server with three released runs and two refused ones in it, and who sent them."""

    url: str
    agents: Agents

    def get(self, path: str, **query: str) -> Any:
        with urlopen(f"{self.url}{path}?{urlencode(query)}") as answer:  # noqa: S310  always the loopback address
            return json.load(answer)["data"]

    def spans(self, **query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/v1/projects/{PROJECT}/spans", limit="1000", **query)
        return found

    def filtered(self, condition: str) -> list[str]:
        """Return the names of the spans that a filter finds, as the field above the table does."""
        query = """query ($id: ID!, $condition: String) { node(id: $id) { ... on Project {
            spans(filterCondition: $condition, first: 100) { edges { node { name } } } } } }"""
        variables = {"id": self.project["id"], "condition": condition}
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.url}/graphql", body, headers)) as answer:  # noqa: S310  the same
            found = json.load(answer)
        assert "errors" not in found
        return [edge["node"]["name"] for edge in found["data"]["node"]["spans"]["edges"]]

    @property
    def project(self) -> dict[str, Any]:
        (found,) = [one for one in self.get("/v1/projects") if one["name"] == PROJECT]
        return dict(found)


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    folder = tmp_path_factory.mktemp("phoenix")
    port, grpc = free_ports(2)
    settings = {
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with (
        served("phoenix", ["phoenix", "serve"], folder, f"{url}/healthz", settings),
        running("plain", folder, SPANGATE_BACKEND=url) as collector,
    ):
        resource = Resource({"service.name": "agents", "openinference.project.name": PROJECT})
        agents = Agents(HTTPExporter(collector.http), provider={"resource": resource})
        for number in range(3):
            agents.released(f"good{number}")
        agents.refused("bad")
        agents.refused("worse")
        assert agents.flush()
        found = Phoenix(url, agents)
        agents.until(lambda: len(found.get("/v1/projects")) > 1)
        agents.until(lambda: len(found.spans()) == 14)
        yield found


def test_every_span_of_released_runs_and_one_verdict_for_each_refused_one(phoenix: Phoenix) -> None:
    spans = phoenix.spans()
    refused = [span for span in spans if span["attributes"].get("spangate.verdict") == "fail"]
    released = {bytes.fromhex(span["context"]["span_id"]) for span in spans if span not in refused}
    assert released == phoenix.agents.sent.spans
    assert len(refused) == phoenix.agents.sent.refused


def test_refused_runs_are_found_by_attribute_and_by_status(phoenix: Phoenix) -> None:
    names = {"refused bad", "refused worse"}
    assert {span["name"] for span in phoenix.spans(attribute="spangate.verdict:fail")} == names
    assert {span["name"] for span in phoenix.spans(status_code="ERROR")} == names
    assert {span["span_kind"] for span in phoenix.spans(status_code="ERROR")} == {"GUARDRAIL"}


def test_the_field_above_the_table_finds_them(phoenix: Phoenix) -> None:
    assert set(phoenix.filtered("attributes['spangate']['verdict'] == 'fail'")) == {"refused bad", "refused worse"}
    assert set(phoenix.filtered("span_kind == 'GUARDRAIL'")) == {"refused bad", "refused worse"}
    assert set(phoenix.filtered("attributes['spangate']['verdict'] == 'pass'")) == {"good0", "good1", "good2"}
    cluster = phoenix.spans(status_code="ERROR")[0]["attributes"]["spangate.cluster"]
    assert len(phoenix.filtered(f"attributes['spangate']['cluster'] == '{cluster}'")) >= 1


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("refused bad", "completeness.open_span: started and never ended"), ("good0", "good0/2")],
    ids=["a refused run", "a released run"],
)
def test_the_page_shows(phoenix: Phoenix, name: str, wanted: str, tmp_path: Path) -> None:
    (trace,) = {span["context"]["trace_id"] for span in phoenix.spans(name=name)}
    with opened(tmp_path / "profile") as browser:
        browser.visit(f"{phoenix.url}/projects/{phoenix.project['id']}/traces/{trace}")
        browser.until("return document.body.innerText.includes(arguments[0])", wanted)
        browser.picture(tmp_path / "phoenix.png")
    assert (tmp_path / "phoenix.png").stat().st_size > 10_000
