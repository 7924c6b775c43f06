"""A Pydantic AI agent behind the gate. The model is a function here, so that it runs without a network or a key."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from spangate import GateSpanProcessor, Verdict
from spangate.gates import Budget, Completeness, Forest


def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"})])
    return ModelResponse(parts=[TextPart("Take an umbrella.")])


def told(verdict: Verdict) -> None:
    totals = verdict.totals
    print(f"{verdict.run_name}: {verdict.verdict}, {totals.input_tokens} input tokens")
    for finding in verdict.failures:
        print(f"  {finding.code}: {finding.detail}")


agent = Agent(FunctionModel(model), name="umbrella")


@agent.tool_plain
def weather(city: str) -> str:
    return f"Rain in {city}."


for ceiling in (1_000, 100):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    gate = GateSpanProcessor(
        exporter, gates=[Completeness(), Forest(), Budget(max_input_tokens=ceiling)], on_verdict=told
    )
    provider.add_span_processor(gate)
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    agent.run_sync("Do I need an umbrella in Oslo?")
    provider.shutdown()
    print(*(f"  exported: {span.name}" for span in exporter.get_finished_spans()), sep="\n")
