"""How a request is read and answered in either protocol: OTLP/HTTP, with protobuf or JSON, and OTLP/gRPC."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from google.protobuf import json_format  # type: ignore[import-untyped] # has no stubs
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # has no stubs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from spangate._receiver.answers import Answer
from spangate._receiver.bodies import BadBodyError
from spangate._receiver.json_bodies import from_json

_FRAME: Final = struct.Struct(">BI")
"""What stands before a gRPC message: whether it is packed, and its length."""
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_RETRY_S: Final = b"1"


class Dialogue(Protocol):
    """One protocol.

    ``path`` is where requests for traces go, ``is_known`` says whether the request claims to be in a form known here.
    """

    path: str
    is_known: bool

    def packed(self, body: bytes) -> tuple[bytes, str]:
        """Return what the body holds, and how it is packed. Raises :class:`BadBodyError`."""

    def protobuf(self, message: bytes) -> bytes:
        """Return what was packed as protobuf. Raises :class:`BadBodyError`."""

    def answer(self, answer: Answer) -> Iterator[dict[str, Any]]:
        """Yield the ASGI messages that answer the request."""


def dialogue_of(headers: Mapping[str, str]) -> Dialogue:
    """Return the protocol that a request is made in."""
    return Grpc(headers) if headers.get("content-type", "").startswith("application/grpc") else Http(headers)


class Http:
    """OTLP/HTTP, with protobuf or JSON; the answer is in the form of the request."""

    path = "/v1/traces"

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._packing = headers.get("content-encoding", "").strip().lower()
        self._form = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.is_known = self._form in (_PROTOBUF, _JSON)

    def packed(self, body: bytes) -> tuple[bytes, str]:
        """Return the body as it is."""
        return body, self._packing

    def protobuf(self, message: bytes) -> bytes:
        """Return the message, from JSON if it is that."""
        return from_json(message) if self._form == _JSON else message

    def answer(self, answer: Answer) -> Iterator[dict[str, Any]]:
        """Yield the response: the service's, or a ``Status`` that says what is wrong."""
        body = _response(answer) if answer.grpc == 0 else Status(code=answer.grpc, message=answer.message)
        is_json = self._form == _JSON
        content = json_format.MessageToJson(body).encode() if is_json else body.SerializeToString()
        form = _JSON if is_json else _PROTOBUF
        headers = [(b"content-type", form.encode()), (b"content-length", str(len(content)).encode())]
        if answer.http == 503:  # noqa: PLR2004  the status that asks for another try
            headers.append((b"retry-after", _RETRY_S))
        if answer.reason is not None:
            headers.append((b"connection", b"close"))  # the rest of the body may be on its way
        yield {"type": "http.response.start", "status": answer.http, "headers": headers}
        yield {"type": "http.response.body", "body": content}


class Grpc:
    """OTLP/gRPC, which is one message each way and a status at the end."""

    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    is_known = True

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._packing = headers.get("grpc-encoding", "").strip().lower()

    def packed(self, body: bytes) -> tuple[bytes, str]:
        """Take the frame away."""
        if len(body) < _FRAME.size:
            raise BadBodyError("no gRPC message")
        is_packed, size = _FRAME.unpack_from(body)
        message = body[_FRAME.size :]
        if len(message) != size:
            raise BadBodyError(f"a gRPC message of {size} bytes is told, {len(message)} came")
        return message, self._packing if is_packed else ""

    def protobuf(self, message: bytes) -> bytes:
        """Return the message, which is protobuf."""
        return message

    def answer(self, answer: Answer) -> Iterator[dict[str, Any]]:
        """Yield the response with its status in the trailers."""
        headers = [(b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity,gzip,deflate")]
        yield {"type": "http.response.start", "status": 200, "headers": headers, "trailers": True}
        content = _response(answer).SerializeToString()
        body = _FRAME.pack(0, len(content)) + content if answer.grpc == 0 else b""
        yield {"type": "http.response.body", "body": body}
        status = [(b"grpc-status", str(answer.grpc).encode())]
        if answer.message:
            status.append((b"grpc-message", quote(answer.message, safe=" ,;:./=()'").encode()))
        yield {"type": "http.response.trailers", "headers": status}


def _response(answer: Answer) -> ExportTraceServiceResponse:
    response = ExportTraceServiceResponse()
    if answer.rejected:
        response.partial_success.rejected_spans = answer.rejected
        response.partial_success.error_message = answer.message
    return response
