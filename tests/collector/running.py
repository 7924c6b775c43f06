"""A real OpenTelemetry Collector as a child process, with one of the configurations in collector-config."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

CONFIGURATIONS = Path(__file__).parents[2] / "collector-config"
SILENT = "yaml:service::telemetry::metrics::level: none"
"""The Collector's own metrics listen at one port that never changes, and several may run at once here."""
SOON = 30.0
_PORTS = ("SPANGATE_GRPC_PORT", "SPANGATE_HTTP_PORT", "SPANGATE_PROMETHEUS_PORT", "SPANGATE_HEALTH_PORT")


def otelcol() -> str:
    """Return the path of a Collector; skip the test without one, or fail it where everything should be there."""
    found = os.environ.get("SPANGATE_OTELCOL") or shutil.which("otelcol") or shutil.which("otelcol-contrib")
    if found is not None:
        return found
    reason = "no OpenTelemetry Collector: put otelcol on the PATH or name one with SPANGATE_OTELCOL"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Collector:
    """A Collector that can be stopped and started again at the same ports, with what it has written."""

    def __init__(self, configuration: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        self._environment = {
            **os.environ,
            "SPANGATE_LISTEN": "127.0.0.1",
            **{name: str(port) for name, port in self.ports.items()},
            **settings,
        }
        path = CONFIGURATIONS / f"{configuration}.yaml"
        self._command = [otelcol(), "--config", str(path), "--config", SILENT]
        self.log = folder / "otelcol.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def http(self) -> str:
        """Where spans are sent by OTLP/HTTP."""
        return f"http://127.0.0.1:{self.ports['SPANGATE_HTTP_PORT']}/v1/traces"

    @property
    def grpc(self) -> str:
        """Where spans are sent by OTLP/gRPC."""
        return f"http://127.0.0.1:{self.ports['SPANGATE_GRPC_PORT']}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + SOON
        for port in (self.ports["SPANGATE_GRPC_PORT"], self.ports["SPANGATE_HTTP_PORT"]):
            while not is_open(port):
                assert self._process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.02)

    def stop(self) -> None:
        """End it as an operator does, which has it send what it has in hand."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a machine that fails does."""
        self._end(signal.SIGKILL)

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(SOON)
            self._process = None


@contextmanager
def running(configuration: str, folder: Path, **settings: str) -> Iterator[Collector]:
    """Run a Collector as long as the block; ``settings`` are variables that the configuration reads."""
    collector = Collector(configuration, folder, settings)
    collector.start()
    try:
        yield collector
    finally:
        collector.kill()


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address at which nobody listens."""
    with ExitStack() as stack:
        probes = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def is_open(port: int) -> bool:
    """Say whether somebody listens there."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
