"""Whole agents of real frameworks through a tape: recorded once, replayed ten times with the server gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from spangate import tape
from spangate.tape import ReplayMiss
from tests.frameworks.clients import NO_TLS, async_client_of
from tests.frameworks.gated import Gated, passed
from tests.frameworks.pydantic_agent import traced_agent
from tests.model_server import ModelServer, call, calls, says

PROMPT = "Rain in Paris and Rome?"
SCRIPT = {"m": [calls(call("look_up", city="Paris"), call("look_up", city="Rome")), says("It rains in both.")]}
Run: TypeAlias = Callable[[tape.Tape, str, str], str]


LOOKED_UP: list[str] = []
"""What the tool was really called with."""


def look_up(city: str) -> str:
    """Look up the weather."""
    LOOKED_UP.append(city)
    return f"rain in {city}"


def pydantic_ai(one: tape.Tape, url: str, prompt: str = PROMPT) -> str:
    async def run() -> str:
        act = one.tool(look_up)
        async with async_client_of(url, max_retries=2) as client:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
            return (await Agent(model, tools=[act]).run(prompt)).output

    with tape.patch_httpx(one):
        return asyncio.run(run())


def langgraph(one: tape.Tape, url: str, prompt: str = PROMPT) -> str:
    act = one.tool(look_up)
    with openai.DefaultHttpxClient(verify=NO_TLS) as client, tape.patch_httpx(one):
        model = ChatOpenAI(model="m", base_url=url, api_key="-", http_client=client, use_responses_api=False)  # type: ignore[arg-type]
        agent: Any = create_agent(model, [langchain_tool(act)])
        return str(agent.invoke({"messages": [("user", prompt)]})["messages"][-1].content)


@pytest.mark.parametrize("run", [pydantic_ai, langgraph])
class TestAnAgent:
    @pytest.fixture
    def recorded(self, run: Run, tmp_path: Path) -> tuple[Path, str, str]:
        path = tmp_path / "run.jsonl"
        with ModelServer(SCRIPT) as server, tape.record(path) as recording:
            url = server.url
            assert run(recording, url, PROMPT) == "It rains in both."
        assert [one.kind for one in tape.read_cassette(path).decisions].count("tool") == 2
        return path, url, recording.digest

    def test_is_replayed_whole_ten_times(self, run: Run, recorded: tuple[Path, str, str]) -> None:
        path, url, digest = recorded
        LOOKED_UP.clear()
        for _ in range(10):
            with tape.replay(path, left_over="raise") as replaying:
                assert run(replaying, url, PROMPT) == "It rains in both."
            assert replaying.digest == digest
            assert replaying.report.is_same
        assert LOOKED_UP == []

    def test_misses_at_the_first_step_where_the_prompt_was_edited(
        self, run: Run, recorded: tuple[Path, str, str]
    ) -> None:
        path, url, _ = recorded
        with (
            pytest.raises(ReplayMiss, match=r"0 of 4 decisions agreed .*was recorded, .*Oslo"),
            tape.replay(path, left_over="raise") as replaying,
        ):
            run(replaying, url, "Rain in Oslo?")


def test_a_tool_whose_schema_changed_misses_at_step_1(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ModelServer(SCRIPT) as server, tape.record(path) as recording:
        url = server.url
        pydantic_ai(recording, url)

    def with_unit(city: str, unit: str = "C") -> str:
        """Look up the weather."""
        return f"rain in {city} at 9 {unit}"

    async def run(replaying: tape.Tape) -> None:
        async with async_client_of(url) as client:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
            await Agent(model, tools=[replaying.tool(with_unit, name="look_up")]).run(PROMPT)

    with (
        pytest.raises(ReplayMiss, match=r"0 of 4 decisions agreed .*\$\.body\.tools") as caught,
        tape.replay(path, left_over="raise") as replaying,
        tape.patch_httpx(replaying),
    ):
        asyncio.run(run(replaying))
    assert caught.value.agreed == 0


def test_a_replayed_run_is_believed_as_the_recorded_one_was(gated: Gated, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def run(one: tape.Tape, url: str) -> str:
        agent = traced_agent(gated.provider, one.tool(look_up, name="look_up"))
        async with async_client_of(url) as client:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
            return (await agent.run(PROMPT, model=model)).output

    with ModelServer(SCRIPT) as server, tape.record(path) as recording, tape.patch_httpx(recording):
        url = server.url
        asyncio.run(run(recording, url))
    with tape.replay(path, left_over="raise") as replaying, tape.patch_httpx(replaying):
        asyncio.run(run(replaying, url))
    recorded, replayed = gated.released_runs()
    assert recorded == replayed == passed((200, 40))
