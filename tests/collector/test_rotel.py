"""The same with rotel, another collector, which comes as a Python package."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter

from tests.collector.conftest import Agents, assert_all_arrived
from tests.collector.running import CONFIGURATIONS, SOON, free_ports, is_open
from tests.otlp_sink import Sink


def binary() -> Path:
    """Return the program inside the package; without it, skip or fail as for the other collector."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("rotel's program is linked with Python 3.11")
    package = importlib.util.find_spec("rotel")
    if package is None or package.origin is None:
        reason = "no rotel: pip install rotel"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return Path(package.origin).with_name("rotel-agent")


def settings(values: Mapping[str, str]) -> dict[str, str]:
    """Return what a shell makes of rotel.env."""
    script = f'set -a; . "{CONFIGURATIONS / "rotel.env"}"; env -0'
    printed = subprocess.run(["sh", "-c", script], env={**os.environ, **values}, capture_output=True, check=True).stdout
    return dict(line.split("=", 1) for line in printed.decode().split("\0") if line)


@contextmanager
def rotel(folder: Path, backend: Sink) -> Iterator[tuple[int, int]]:
    grpc, http = free_ports(2)
    environment = settings(
        {
            "SPANGATE_GRPC_PORT": str(grpc),
            "SPANGATE_HTTP_PORT": str(http),
            "SPANGATE_BACKEND": backend.endpoint.removesuffix("/v1/traces"),
            "SPANGATE_PID_FILE": str(folder / "pid"),
        }
    )
    with (folder / "rotel.log").open("wb") as log:
        process = subprocess.Popen([binary(), "start"], env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SOON
        while not (is_open(grpc) and is_open(http)):
            assert process.poll() is None, (folder / "rotel.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield grpc, http
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_rotel_hands_on_everything(protocol: str, backend: Sink, tmp_path: Path) -> None:
    with rotel(tmp_path, backend) as (grpc, http):
        agents = Agents(
            HTTPExporter(f"http://127.0.0.1:{http}/v1/traces")
            if protocol == "http"
            else GRPCExporter(endpoint=f"http://127.0.0.1:{grpc}")
        )
        for number in range(20):
            agents.released(f"good{number}", tools=100)
        agents.refused()
        assert agents.flush()
        assert_all_arrived(agents, backend)
