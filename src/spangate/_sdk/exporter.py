"""The exporter that is used where none is given: OTLP, set up by the standard environment variables."""

from __future__ import annotations

import os

from opentelemetry.sdk.trace.export import SpanExporter

from spangate._errors import SpangateError

_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def otlp_exporter() -> SpanExporter:
    """Make the OTLP exporter for the protocol that the environment names.

    ``OTEL_EXPORTER_OTLP_TRACES_PROTOCOL``, else ``OTEL_EXPORTER_OTLP_PROTOCOL``, else ``grpc``, which is what
    ``OTEL_TRACES_EXPORTER=otlp`` means in Python. Endpoint, headers, certificates and the rest are read by the
    exporter itself.

    Raises:
        SpangateError: the variable names a protocol that there is no exporter for.
    """
    name, protocol = next(((name, os.environ[name]) for name in _VARIABLES if os.environ.get(name)), ("", "grpc"))
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_exporter  # heavy: only where wanted

        return grpc_exporter.OTLPSpanExporter()
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_exporter

        return http_exporter.OTLPSpanExporter()
    raise SpangateError(f"{name}={protocol!r}: this may be grpc or http/protobuf")
