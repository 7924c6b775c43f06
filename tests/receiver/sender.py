"""Requests as programs of a run send them, made by hand: with its token, or with what else a test puts there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]
import requests
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.trace import Span

from tests.live.gated import Gated

TELL = "import json, os; print(json.dumps(dict(os.environ)))"
PROTOBUF = {"content-type": "application/x-protobuf"}


@dataclass
class Sender:
    """What a program of an open run knows, and how it sends. ``root`` is the run's root, still open."""

    gated: Gated
    root: Span
    environment: Mapping[str, str]

    @property
    def address(self) -> str:
        return self.environment["SPANGATE_RECEIVER"]

    @property
    def token(self) -> str:
        return self.environment["OTEL_EXPORTER_OTLP_TRACES_HEADERS"].removeprefix("authorization=Bearer%20")

    @property
    def parent(self) -> tuple[int, int]:
        """Trace id and span id of the program's own span."""
        _, trace_id, span_id, _ = self.environment["TRACEPARENT"].split("-")
        return int(trace_id, 16), int(span_id, 16)

    def post(self, body: Any, token: str | None = None, **headers: str) -> requests.Response:
        """Post to the receiver with the program's token, or with another; "" for none."""
        told = self.token if token is None else token
        known = {**PROTOBUF, **({"authorization": f"Bearer {told}"} if told else {}), **headers}
        with requests.Session() as session:
            session.trust_env = False
            return session.post(f"{self.address}/v1/traces", data=body, headers=known, timeout=30)

    def call(
        self, request: ExportTraceServiceRequest, token: str | None = None, **options: Any
    ) -> ExportTraceServiceResponse:
        """Call the receiver by gRPC."""
        told = self.token if token is None else token
        metadata = [("authorization", f"Bearer {told}")] if told else []
        channel_options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(self.address.removeprefix("http://"), options=channel_options) as channel:
            stub: Any = TraceServiceStub(channel)  # type: ignore[no-untyped-call]
            answer: ExportTraceServiceResponse = stub.Export(request, metadata=metadata, timeout=30, **options)
            return answer

    def request(self, *names: str, **fields: Any) -> ExportTraceServiceRequest:
        """Make a request with spans of these names below the program's span, unless ``fields`` say otherwise."""
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        trace_id, parent_id = self.parent
        for number, name in enumerate(names, 1):
            start = self.root.start_time or 0
            known = {
                "trace_id": trace_id.to_bytes(16, "big"),
                "span_id": (0xABC0 + number).to_bytes(8, "big"),
                "parent_span_id": parent_id.to_bytes(8, "big"),
                "name": name,
                "kind": 1,
                "flags": 0x301,
                "start_time_unix_nano": start + number,
                "end_time_unix_nano": start + number + 1,
            }
            spans.add(**{**known, **fields})
        return request

    def finish(self) -> str:
        """End the run, and return what was said of it: ``pass`` or ``fail`` with the codes."""
        self.root.end()
        gated = self.gated
        before = len(gated.verdicts)
        gated.until(lambda: gated.flush() and len(gated.verdicts) > before)
        return gated.told[self.root.name]


def sender_in(gated: Gated, span: Span, environment: Mapping[str, str] | None = None) -> Sender:
    """Return what sends as a program that was started below a span, and has ended.

    It has told its environment, the one that it was given or inherited.
    """
    with trace.use_span(span, end_on_exit=False):
        command = [sys.executable, "-c", TELL]
        told = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    return Sender(gated, span, json.loads(told.stdout))


@contextmanager
def running_in(gated: Gated, span: Span) -> Iterator[Sender]:
    """Have a program run below a span as long as the block, and yield what sends as it."""
    with trace.use_span(span, end_on_exit=False):
        command = [sys.executable, "-u", "-c", f"{TELL}; input()"]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    yield Sender(gated, span, json.loads(program.stdout.readline()))
    program.communicate("\n")


def as_what(operation: str, request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Have every span of a request say that it is this operation."""
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
    return request


@contextmanager
def open_run(gated: Gated, name: str = "agent", environment: Mapping[str, str] | None = None) -> Iterator[Sender]:
    """Open a run in which a program has told its environment, and ended."""
    sender = sender_in(gated, gated.start("agent", name), environment)
    yield sender
    if sender.root.is_recording():
        sender.root.end()
