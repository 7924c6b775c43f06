"""An MCP server over stdio, by the official SDK, with the stock OpenTelemetry SDK: it knows nothing of a gate."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
server = MCPServer("files")


@server.tool()
def grep(pattern: str) -> str:
    """Find a pattern."""
    with trace.get_tracer("grep").start_as_current_span("read files"):
        return f"2 lines have {pattern}"


if __name__ == "__main__":
    server.run()
    provider.shutdown()
