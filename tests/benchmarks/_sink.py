"""An OTLP/HTTP receiver in a process of its own that counts spans and keeps none."""

from __future__ import annotations

import gzip
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, ClassVar
from urllib.request import urlopen

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Sink:
    """Where it listens. Each path is counted on its own, so that contestants can share one."""

    base: str

    def endpoint(self, name: str) -> str:
        """Return the URL to export to."""
        return f"{self.base}/{name}"

    def received(self, name: str) -> int:
        """Return how many spans were exported there."""
        with urlopen(self.endpoint(name)) as answer:  # noqa: S310  always the loopback address
            return int(answer.read())


@contextmanager
def sink() -> Iterator[Sink]:
    """Run a receiver as long as the block."""
    here, there = _spawn.Pipe()
    runner = _spawn.Process(target=_serve, args=(there,), daemon=True)
    runner.start()
    try:
        yield Sink(f"http://127.0.0.1:{here.recv()}")
    finally:
        runner.terminate()
        runner.join()


def _serve(pipe: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counts: ClassVar[dict[str, int]] = {}

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        scopes = (scope for resource in request.resource_spans for scope in resource.scope_spans)
        self.counts[self.path] = self.counts.get(self.path, 0) + sum(len(scope.spans) for scope in scopes)
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(str(self.counts.get(self.path, 0)).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""
