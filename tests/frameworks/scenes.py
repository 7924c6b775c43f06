"""What happens in the runs, whatever framework traces them: what the model answers and how its tool behaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from tests.frameworks.gated import Gated, Tokens
from tests.model_server import Answer, call, calls, says

QUESTION = "Does it rain in Paris and in Rome?"
LookUp: TypeAlias = Callable[[str], str]
"""The one tool: the weather in a city."""


class Busy(Exception):  # noqa: N818  no error of the run, but an answer to the model
    """What a tool raises to have the model told, which may go on."""


@dataclass(frozen=True)
class Told:
    """How a run ended: what the agent said, and the tokens that its framework has counted."""

    text: str
    tokens: Tokens


Run: TypeAlias = Callable[[str, LookUp], Told]
"""Asks the agent once, given the name of a model and the tool."""
Agent: TypeAlias = Callable[[Gated, Mapping[str, Sequence[Answer]]], AbstractContextManager[Run]]
"""A way to build and to trace an agent. Entered with a script (:mod:`tests.model_server`), it is ready to run."""

TWO_CITIES = (calls(call("look_up", city="Paris"), call("look_up", city="Rome")), says("It rains in both."))
ONE_CITY = (calls(call("look_up", city="Paris")), says("It rains."))


def rain(_city: str) -> str:
    """Answer as a healthy tool."""
    return "rain"


def busy(city: str) -> str:
    """Fail in a way that the model is told of."""
    raise Busy(f"{city} does not answer now")


def broken(city: str) -> str:
    """Fail in a way that nobody catches."""
    raise RuntimeError(f"no station in {city}")
