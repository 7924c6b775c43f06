"""Receivers that are away or say no: the host is not disturbed, one line says why, and what can be delivered is."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
import trustme
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.sdk.trace.export import SpanExporter

from tests.live.gated import SOON, Gated

TIMEOUT_S = 0.3
"""Of one call of the exporter, which pauses and tries again by itself for as long."""


class Receiver:
    """Answers by a script, and accepts once nothing is left of it; ``largest`` bytes of a request at most."""

    def __init__(self, script: Sequence[Any], largest: int | None = None) -> None:
        self._script = list(script)
        self._largest = largest
        self._lock = threading.Lock()
        self.names: list[str] = []
        self.calls = 0

    def answer(self, body: bytes) -> Any:
        """Return the scripted answer to a request, None to accept it."""
        with self._lock:
            self.calls += 1
            if self._largest is not None and len(body) > self._largest:
                return 413
            if self._script:
                return self._script.pop(0)
            request = ExportTraceServiceRequest.FromString(body)
            self.names += [
                span.name
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            return None


@contextmanager
def http_receiver(receiver: Receiver, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer = receiver.answer(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers = answer if isinstance(answer, tuple) else (answer or 200, {})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_arguments: Any) -> None:
            """Say nothing of handshakes that break off."""

    server = Server(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://localhost:{server.server_address[1]}/v1/traces"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_receiver(receiver: Receiver, port: int = 0) -> Iterator[str]:
    class Servicer(TraceServiceServicer):
        def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:  # noqa: N802
            code = receiver.answer(request.SerializeToString())
            if code is not None:
                context.abort(code, "no")
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Servicer(), server)  # type: ignore[no-untyped-call]
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.stop(None).wait()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.01)
    monkeypatch.setattr("spangate._release.tries.LONGEST_PAUSE_S", 0.05)


@contextmanager
def gated_by(exporter: SpanExporter) -> Iterator[Gated]:
    gated = Gated(exporter=exporter)
    yield gated
    gated.shutdown()


def run(gated: Gated, name: str = "agent", tools: int = 1) -> None:
    with gated.open("agent", name) as agent:
        for number in range(tools):
            gated.ended("tool", f"{name}/{number}", under=agent)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what somebody reads who has changed nothing about logging."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


EXPORTERS: Mapping[str, tuple[Callable[..., Any], Callable[..., SpanExporter]]] = {
    "http": (http_receiver, HTTPExporter),
    "grpc": (grpc_receiver, GRPCExporter),
}


@pytest.mark.parametrize("protocol", EXPORTERS)
def test_a_receiver_that_comes_later_gets_everything(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    listen, exporter = EXPORTERS[protocol]
    port = free_port()
    path = "/v1/traces" if protocol == "http" else ""
    with gated_by(exporter(endpoint=f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S)) as gated:
        for number in range(3):
            run(gated, f"run{number}")
        assert not gated.flush(0.5)
        assert gated.gate.losses == {}
        receiver = Receiver([])
        with listen(receiver, port):
            assert gated.flush()
        assert sorted(receiver.names) == sorted(f"run{n}{end}" for n in range(3) for end in ("", "/0"))
    lines = told(caplog)
    assert len(lines) == 1
    assert "OTLPSpanExporter: spans wait, and are offered again" in lines[0]


PASSING = {
    "http": [503, 502, 504, 429, (429, {"Retry-After": "1"}), (503, {"Retry-After": "30"})],
    "grpc": [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED],
}


@pytest.mark.parametrize(
    ("protocol", "answer"), [(protocol, answer) for protocol, answers in PASSING.items() for answer in answers]
)
def test_what_passes_is_waited_for(protocol: str, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    listen, exporter = EXPORTERS[protocol]
    receiver = Receiver([answer] * 8)  # more than what is tried for any other reason
    with listen(receiver) as endpoint, gated_by(exporter(endpoint=endpoint, timeout=TIMEOUT_S)) as gated:
        run(gated)
        assert gated.flush(SOON)
        assert gated.gate.losses == {}
    assert sorted(receiver.names) == ["agent", "agent/0"]
    assert len(told(caplog)) == 1


LASTING = {
    "http": [(400, "400"), (401, "401"), (403, "403"), (404, "404")],
    "grpc": [
        (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"),
        (grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED"),
    ],
}


@pytest.mark.parametrize(
    ("protocol", "answer", "word"), [(protocol, *case) for protocol, cases in LASTING.items() for case in cases]
)
def test_what_does_not_pass_is_counted_by_its_reason(
    protocol: str, answer: Any, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    listen, exporter = EXPORTERS[protocol]
    receiver = Receiver([answer] * 8)  # the run and what is sent in its place, four tries each
    with listen(receiver) as endpoint, gated_by(exporter(endpoint=endpoint, timeout=TIMEOUT_S)) as gated:
        run(gated)
        assert not gated.flush(SOON)
        assert set(gated.gate.losses) == {f"refused: {word}"}
        run(gated, "after")
        assert gated.flush(SOON)
    assert sorted(receiver.names) == ["after", "after/0"]
    first, second, *_ = told(caplog)
    assert f"OTLPSpanExporter: spans are refused (refused: {word}: " in first
    assert f"(reason 'refused: {word}')" in second


def test_what_is_too_large_for_one_request_goes_in_smaller_ones(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver([], largest=8_000)
    with http_receiver(receiver) as endpoint, gated_by(HTTPExporter(endpoint, timeout=TIMEOUT_S)) as gated:
        run(gated, tools=200)
        assert gated.flush(SOON)
        assert gated.gate.losses == {}
    assert sorted(receiver.names) == sorted(["agent", *(f"agent/{number}" for number in range(200))])
    assert receiver.names[-1] == "agent"
    assert [line.partition(" (")[0] for line in told(caplog)] == ["OTLPSpanExporter: spans go in smaller requests"]


def test_a_span_that_no_request_can_carry_costs_its_run_alone() -> None:
    receiver = Receiver([], largest=8_000)
    with http_receiver(receiver) as endpoint, gated_by(HTTPExporter(endpoint, timeout=TIMEOUT_S)) as gated:
        with gated.open("agent", "large") as agent:
            gated.ended("tool", "huge", under=agent, attributes={"text": "x" * 20_000})
        run(gated, "small")
        assert not gated.flush(SOON)
        assert "refused: 413" in gated.gate.losses
    assert {"small", "small/0"} <= set(receiver.names)
    assert "large" not in receiver.names


def test_a_certificate_of_another_authority_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # which requests prefers to the exporter's own setting
        monkeypatch.delenv(variable, raising=False)
    ours, theirs = trustme.CA(), trustme.CA()
    for name, authority in (("ours", ours), ("theirs", theirs)):
        authority.cert_pem.write_to_path(str(tmp_path / name))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue_cert("localhost").configure_cert(tls)
    receiver = Receiver([])
    with http_receiver(receiver, tls=tls) as endpoint:
        with gated_by(HTTPExporter(endpoint, certificate_file=str(tmp_path / "theirs"), timeout=2.0)) as gated:
            run(gated)
            gated.until(lambda: told(caplog))
        assert receiver.names == []
        with gated_by(HTTPExporter(endpoint, certificate_file=str(tmp_path / "ours"), timeout=5.0)) as gated:
            run(gated)
            assert gated.flush(SOON)
    assert sorted(receiver.names) == ["agent", "agent/0"]
    assert "CERTIFICATE_VERIFY_FAILED" in told(caplog)[0]


def test_what_waits_for_a_receiver_is_bounded_and_counted() -> None:
    port = free_port()
    exporter = HTTPExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=TIMEOUT_S)
    gated = Gated(exporter=exporter, max_held_bytes=64 << 10)
    for number in range(300):
        run(gated, f"{number}", tools=3)
        gated.flush(0.0)
    gated.until(lambda: gated.gate.losses.get("backlog", 0) > 0)
    receiver = Receiver([])
    with http_receiver(receiver, port):
        gated.flush(SOON)
        gated.shutdown()
    lost = sum(gated.gate.losses.values())
    assert set(gated.gate.losses) <= {"backlog", "overload"}
    arrived = [name for name in receiver.names if not name.startswith("refused")]
    assert arrived
    assert len(arrived) + lost >= 1_200  # a verdict in the place of what was lost is a span of its own


def test_a_shutdown_during_an_outage_is_bounded_and_counts_what_is_left() -> None:
    exporter = HTTPExporter(f"http://127.0.0.1:{free_port()}/v1/traces", timeout=TIMEOUT_S)
    gated = Gated(exporter=exporter)
    run(gated)
    gated.shutdown()
    assert sum(gated.gate.losses.values()) >= 2


def test_what_others_log_is_theirs(caplog: pytest.LogCaptureFixture) -> None:
    """Only what is logged during our own calls is told once; the same logger speaks freely for others."""
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").error("Failed to export %s", "logs")
    assert told(caplog) == ["Failed to export logs"]
