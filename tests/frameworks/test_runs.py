"""What becomes of a run, whichever framework traces it: one scene, one verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from typing import Final

import pytest

from tests.frameworks import openai_agent, pydantic_agent
from tests.frameworks.gated import Account, Gated, passed
from tests.frameworks.openai_agent import GENAI, GENAI_WITH_CONTENT, OPENINFERENCE
from tests.frameworks.scenes import ONE_CITY, TWO_CITIES, Agent, LookUp, broken, busy, rain
from tests.model_server import USAGE, fails

PLAIN: Final[dict[str, Agent]] = {
    "pydantic-ai": partial(pydantic_agent.scripted, style="sync"),
    "pydantic-ai+openai": partial(pydantic_agent.served, stream=False),
    "genai": partial(openai_agent.agent, tracing=GENAI),
    "genai+content": partial(openai_agent.agent, tracing=GENAI_WITH_CONTENT),
    "openinference": partial(openai_agent.agent, tracing=OPENINFERENCE),
}
OTHER_STYLES: Final[dict[str, Agent]] = {
    "pydantic-ai, async": partial(pydantic_agent.scripted, style="async"),
    "pydantic-ai, streamed": partial(pydantic_agent.scripted, style="stream"),
    "pydantic-ai+openai, streamed": partial(pydantic_agent.served, stream=True),
    **{
        f"{name}, {style}": partial(
            openai_agent.agent, tracing=tracing, in_async="async" in style, stream="stream" in style
        )
        for name, tracing in (("genai", GENAI), ("genai+content", GENAI_WITH_CONTENT), ("openinference", OPENINFERENCE))
        for style in ("async", "streamed", "async streamed")
    },
}


def every(agents: dict[str, Agent]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("agent", [pytest.param(agent, id=name) for name, agent in agents.items()])


@every({**PLAIN, **OTHER_STYLES})
def test_a_healthy_run_is_released_whole_with_its_root_last(agent: Agent, gated: Gated) -> None:
    with agent(gated, {"model-a": TWO_CITIES}) as run:
        told = run("model-a", rain)
    assert gated.released() == passed(told.tokens)
    assert len(gated.ended) == 5


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        (
            "pydantic-ai",
            "completeness.control_flow_error",
        ),  # it asks the model to try again, by an exception of its own
        ("pydantic-ai+openai", "completeness.control_flow_error"),
        ("genai", "completeness.recovered_error"),
        ("genai+content", "completeness.recovered_error"),
        ("openinference", "completeness.recovered_error"),
    ],
)
def test_a_tool_error_that_the_model_was_told_of_travels_as_a_warning(name: str, warning: str, gated: Gated) -> None:
    with PLAIN[name](gated, {"model-a": ONE_CITY}) as run:
        told = run("model-a", busy)
    assert gated.released() == passed(told.tokens, warning)


@every(PLAIN)
def test_a_run_that_says_that_it_failed_is_released(agent: Agent, gated: Gated) -> None:
    with agent(gated, {"model-a": ONE_CITY}) as run, pytest.raises(RuntimeError):
        run("model-a", broken)
    assert gated.released() == passed(USAGE[:2])


@every(PLAIN)
def test_a_failure_over_which_the_root_keeps_silent_refuses_the_run(agent: Agent, gated: Gated) -> None:
    with (
        agent(gated, {"model-a": ONE_CITY}) as run,
        gated.tracer.start_as_current_span("handler"),
        pytest.raises(RuntimeError),
    ):
        run("model-a", broken)
    assert gated.refused() == Account("fail", ("completeness.unrecovered_error",), (), USAGE[:2])


@every(PLAIN)
def test_a_model_call_that_fails_at_last_refuses_a_run_whose_root_keeps_silent(agent: Agent, gated: Gated) -> None:
    with (
        agent(gated, {"model-a": [ONE_CITY[0], fails(500)]}) as run,
        gated.tracer.start_as_current_span("handler"),
        pytest.raises(Exception, match="500"),
    ):
        run("model-a", rain)
    assert gated.refused() == Account("fail", ("completeness.unrecovered_error",), ("budget.lower_bound",))


def elsewhere(work: Callable[[], None]) -> LookUp:
    """Make a tool that does its work in a thread into which nobody copies the context."""

    def look_up(_city: str) -> str:
        thread = threading.Thread(target=Context().run, args=(work,))
        thread.start()
        thread.join()
        return "rain"

    return look_up


@every(PLAIN)
def test_a_tool_span_that_lost_its_context_refuses_the_run_that_it_is_missing_from(agent: Agent, gated: Gated) -> None:
    words = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fetch"}
    fetch = elsewhere(lambda: gated.tracer.start_span("execute_tool fetch", attributes=words).end())
    with agent(gated, {"model-a": ONE_CITY}) as run:
        told = run("model-a", fetch)
    assert gated.refused() == Account("fail", ("forest.stray_root",), (), told.tokens)


@every(PLAIN)
def test_a_model_call_that_lost_its_context_is_judged_alone_and_the_run_is_warned(agent: Agent, gated: Gated) -> None:
    def call_the_model() -> None:
        with gated.tracer.start_as_current_span("chat title", attributes={"gen_ai.operation.name": "chat"}) as span:
            span.set_attributes({"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 1})

    with agent(gated, {"model-a": ONE_CITY}) as run:
        run("model-a", elsewhere(call_the_model))
    assert gated.released_runs() == [passed(None, "budget.lower_bound", "forest.stray_generation"), passed((7, 1))]


@every(PLAIN)
def test_two_runs_at_once_are_kept_apart(agent: Agent, gated: Gated) -> None:
    both_are_in_their_tools = threading.Barrier(2, timeout=5)

    def look_up(_city: str) -> str:
        both_are_in_their_tools.wait()
        return "rain"

    with agent(gated, {"model-a": ONE_CITY, "model-b": ONE_CITY}) as run, ThreadPoolExecutor(2) as threads:
        told = list(threads.map(lambda model: run(model, look_up), ["model-a", "model-b"]))
    assert gated.released_runs() == [passed(one.tokens) for one in told]
