"""Two instrumentations of the same calls: every call is counted once, and the run is warned."""

from __future__ import annotations

from functools import partial

import pytest

from tests.frameworks import openai_agent, pydantic_agent
from tests.frameworks.gated import Gated, passed
from tests.frameworks.openai_agent import GENAI, GENAI_WITH_CONTENT, OPENINFERENCE
from tests.frameworks.scenes import TWO_CITIES, Agent, rain

PYDANTIC_AI = partial(pydantic_agent.served, stream=False)
PYDANTIC_AI_STREAMED = partial(pydantic_agent.served, stream=True)


@pytest.mark.parametrize(
    ("agent", "second"),
    [
        pytest.param(PYDANTIC_AI, GENAI, id="pydantic-ai and genai"),
        pytest.param(PYDANTIC_AI_STREAMED, GENAI, id="pydantic-ai and genai, streamed"),
        pytest.param(PYDANTIC_AI, GENAI_WITH_CONTENT, id="pydantic-ai and genai+content"),
        pytest.param(PYDANTIC_AI, OPENINFERENCE, id="pydantic-ai and openinference"),
        pytest.param(partial(openai_agent.agent, tracing=GENAI), OPENINFERENCE, id="genai and openinference"),
        pytest.param(partial(openai_agent.agent, tracing=OPENINFERENCE), GENAI, id="openinference and genai"),
    ],
)
def test_two_instrumentations_of_the_same_calls_count_once(
    agent: Agent, second: openai_agent.Tracing, gated: Gated
) -> None:
    with agent(gated, {"model-a": TWO_CITIES}) as run, second.instrumented(gated.provider):
        told = run("model-a", rain)
    assert gated.released() == passed(told.tokens, "budget.double_instrumentation")
    assert len(gated.ended) == 7
