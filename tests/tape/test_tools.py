"""Functions as tools: what of a call decides, and what cannot be undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from spangate import tape
from spangate.tape import ReplayMiss, TapeError


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_calls_of_a_function_are_decisions(cassette: Path) -> None:
    calls: list[Any] = []

    def add(a: int, b: int = 2) -> int:
        """Add."""
        calls.append((a, b))
        return a + b

    with tape.record(cassette) as recording:
        taped = recording.tool(add)
        assert (taped(1), taped(a=1, b=4)) == (3, 5)
        assert (taped.__name__, taped.__doc__) == ("add", "Add.")
    with tape.replay(cassette) as replaying:
        taped = replaying.tool(add)
        assert (taped(b=4, a=1), taped(1, 2)) == (5, 3)  # a default counts as if it had been given
    assert calls == [(1, 2), (1, 4)]


def test_so_are_those_of_a_coroutine_function(cassette: Path) -> None:
    async def shout(text: str) -> str:
        return text.upper()

    with tape.record(cassette) as recording:
        assert asyncio.run(recording.tool(shout)("a")) == "A"
    with tape.replay(cassette) as replaying:
        assert asyncio.run(replaying.tool(shout)("a")) == "A"


def test_a_tool_whose_schema_changed_misses_at_once(cassette: Path) -> None:
    def old(city: str) -> str:
        return city

    def new(city: str, *, unit: str = "C") -> str:
        return city + unit

    with tape.record(cassette) as recording:
        recording.tool(old, name="weather")("Paris")
    with (
        tape.replay(cassette, left_over="ignore") as replaying,
        pytest.raises(ReplayMiss, match=r"0 of 1 .*schema|unit"),
    ):
        replaying.tool(new, name="weather")("Paris")


def test_the_schema_may_be_what_the_model_is_told(cassette: Path) -> None:
    def weather(city: str) -> str:
        return city

    told = {"name": "weather", "description": "The weather."}
    with tape.record(cassette) as recording:
        recording.tool(weather, schema=told)("Paris")
    with tape.replay(cassette, left_over="ignore") as replaying:
        with pytest.raises(ReplayMiss, match=r"\$\.schema"):
            replaying.tool(weather, schema={**told, "description": "Another."})("Paris")
        assert replaying.tool(weather, schema=told)("Paris") == "Paris"


def test_what_does_not_decide_is_left_out(cassette: Path) -> None:
    class Agent:
        def __init__(self, taping: tape.Tape) -> None:
            self.look = taping.tool(self.look_up, ignore=["context"], idempotency_key="key")

        def look_up(self, context: object, what: str, key: str) -> str:  # noqa: ARG002  frameworks hand it in
            return what + key

    with tape.record(cassette) as recording:
        assert Agent(recording).look(object(), "a", key="1") == "a1"
    with tape.replay(cassette, left_over="ignore") as replaying:
        with pytest.raises(ReplayMiss, match="idempotency_key"):
            Agent(replaying).look(object(), "a", key="2")
        assert Agent(replaying).look(object(), "a", key="1") == "a1"


def test_methods_are_tools_whoever_they_belong_to(cassette: Path) -> None:
    class Agent:
        def look_up(self, what: str) -> str:
            return what

    with tape.record(cassette) as recording:
        assert recording.tool(Agent.look_up)(Agent(), "a") == "a"
    with tape.replay(cassette) as replaying:
        assert replaying.tool(Agent.look_up)(Agent(), "a") == "a"


class TestWhatCannotBeUndone:
    sent: list[str]

    def pay(self, amount: int) -> str:
        self.sent.append(f"{amount}")
        return "paid"

    @pytest.fixture(autouse=True)
    def _nothing_sent(self) -> None:
        self.sent = []

    def test_is_not_recorded(self, cassette: Path) -> None:
        with tape.record(cassette) as recording, pytest.raises(TapeError, match="pay cannot be undone: give it a stub"):
            recording.tool(self.pay, irreversible=True)

    def test_but_its_stub(self, cassette: Path) -> None:
        with tape.record(cassette) as recording:
            pay = recording.tool(self.pay, irreversible=True, stub=lambda amount: f"would pay {amount}")
            assert pay(3) == "would pay 3"
        with tape.replay(cassette) as replaying:
            assert replaying.tool(self.pay, irreversible=True)(3) == "would pay 3"
        assert self.sent == []

    def test_also_where_it_is_awaited(self, cassette: Path) -> None:
        async def pay(amount: int) -> str:
            raise AssertionError(amount)

        with tape.record(cassette) as recording:
            stubbed = recording.tool(irreversible=True, stub=lambda amount: amount)(pay)
            assert asyncio.run(stubbed(3)) == 3
