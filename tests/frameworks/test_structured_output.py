"""An agent that gives its answer through a tool: the model is asked to correct it, and no tool ever ran for it."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from spangate.testing import GatedProvider


class Forecast(BaseModel):
    """What the agent is to answer."""

    city: str
    degrees: int


def test_a_corrected_answer_is_no_missing_tool() -> None:
    answers = iter(["warm", 21])

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("look_up", {"city": "Oslo"})])
        return ModelResponse(
            parts=[ToolCallPart(info.output_tools[0].name, {"city": "Oslo", "degrees": next(answers)})]
        )

    with GatedProvider() as provider:
        tracing = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
        tool = Tool(lambda city: f"sunny in {city}", name="look_up")
        agent = Agent(FunctionModel(model), output_type=Forecast, tools=[tool], capabilities=[tracing])
        assert asyncio.run(agent.run("How is Oslo?")).output.degrees == 21

    provider.assert_released()
    assert "final_result" in " ".join(gap.detail for gap in provider.verdicts[0].gaps)
