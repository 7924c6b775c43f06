"""Receivers of OTLP on the loopback address, over HTTP and over gRPC: they decode what arrives and keep it.

They take spans and log records, each at its own address over HTTP.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

GRPC_LIMIT = 4 << 20
"""Bytes of a message that a gRPC receiver takes unless it is told otherwise."""


_LOGS = "/v1/logs"
Take = Callable[[ExportTraceServiceRequest | ExportLogsServiceRequest], bool]


class Sink:
    """What arrived at a receiver. It is still to refuse ``refusals`` requests, and takes ``pause_s`` for each."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.requests: list[ExportTraceServiceRequest] = []
        self.log_requests: list[ExportLogsServiceRequest] = []
        self.refusals = 0
        self.pause_s = 0.0
        self._lock = threading.Lock()

    def take(self, request: ExportTraceServiceRequest | ExportLogsServiceRequest) -> bool:
        """Keep a request, or refuse it."""
        time.sleep(self.pause_s)
        with self._lock:
            if self.refusals:
                self.refusals -= 1
                return False
            if isinstance(request, ExportLogsServiceRequest):
                self.log_requests.append(request)
            else:
                self.requests.append(request)
            return True

    @property
    def logs_endpoint(self) -> str:
        """The address for log records: over HTTP another one than that for spans."""
        return self.endpoint.replace("/v1/traces", _LOGS)

    @property
    def log_records(self) -> Sequence[LogRecord]:
        """The log records, in the order of their arrival."""
        return [
            record
            for request in list(self.log_requests)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def spans(self) -> Sequence[Span]:
        """The spans, in the order of their arrival."""
        return [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def names(self) -> Sequence[str]:
        return [span.name for span in self.spans]

    def attributes(self, name: str) -> Mapping[str, Any]:
        """Return the attributes of the only span of that name."""
        (span,) = [span for span in self.spans if span.name == name]
        return {pair.key: plain(pair.value) for pair in span.attributes}


def plain(value: AnyValue) -> Any:
    """Return the value as Python has it. None stands for an empty one."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


@contextmanager
def http_sink(port: int = 0) -> Iterator[Sink]:
    """Run a receiver of OTLP/HTTP as long as the block. Its endpoint is the URL of the traces."""
    sink = Sink()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(sink.take))
    server.daemon_threads = True
    sink.endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(take: Take) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kind = ExportLogsServiceRequest if self.path == _LOGS else ExportTraceServiceRequest
            is_taken = take(kind.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if is_taken else 400)  # the exporter tries again by itself at 503
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def grpc_sink() -> Iterator[Sink]:
    """Run a receiver of OTLP/gRPC as long as the block. Its endpoint is an insecure one."""
    sink = Sink()
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", GRPC_LIMIT)])
    add_TraceServiceServicer_to_server(_Servicer(sink.take), server)  # type: ignore[no-untyped-call]
    add_LogsServiceServicer_to_server(_LogsServicer(sink.take), server)  # type: ignore[no-untyped-call]
    sink.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield sink
    finally:
        server.stop(None).wait()


class _Servicer(TraceServiceServicer):
    def __init__(self, take: Take) -> None:
        self._take = take

    def Export(  # noqa: N802  the name of the call
        self, request: ExportTraceServiceRequest, context: Any
    ) -> ExportTraceServiceResponse:
        if not self._take(request):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "refused")
        return ExportTraceServiceResponse()


class _LogsServicer(LogsServiceServicer):
    def __init__(self, take: Take) -> None:
        self._take = take

    def Export(  # noqa: N802  the name of the call
        self, request: ExportLogsServiceRequest, context: Any
    ) -> ExportLogsServiceResponse:
        if not self._take(request):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "refused")
        return ExportLogsServiceResponse()
