"""One line on the provider you have: a sound run is exported whole, an unsound one leaves nothing but its verdict.

The second run starts a model call that never ends, as a stream does that nobody reads to its end.
"""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangate import GateSpanProcessor

exporter = InMemorySpanExporter()  # in your program: OTLPSpanExporter()
provider = TracerProvider()
provider.add_span_processor(GateSpanProcessor(exporter))  # the line; it takes the place of the BatchSpanProcessor

tracer = provider.get_tracer("kitchen")


def cook(*, abandoned: bool) -> None:
    with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
        call = tracer.start_span("chat small", attributes={"gen_ai.operation.name": "chat"})
        call.set_attributes({"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3})
        if not abandoned:
            call.end()


cook(abandoned=False)
cook(abandoned=True)
provider.shutdown()

for span in exporter.get_finished_spans():
    attributes = span.attributes or {}
    print(span.name, attributes.get("spangate.verdict", ""), attributes.get("spangate.findings", ""), sep="  ")
