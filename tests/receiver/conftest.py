"""A gate with a receiver, and a program of one of its runs that does what a test wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spangate import process
from spangate.process import Receiver
from tests.live.gated import Gated
from tests.process.agent import GATES, Agent
from tests.receiver.sender import Sender, open_run


@pytest.fixture
def settings() -> Receiver:
    """Return what the receiver may take; a module with other bounds has a fixture of its own."""
    return Receiver()


@pytest.fixture
def gated(settings: Receiver) -> Iterator[Gated]:
    """Return a gated provider that traces programs and takes in what they record."""
    provider = Gated(gates=GATES, grace_s=2.0, receiver=settings)
    process.instrument(provider)
    yield provider
    process.uninstrument()
    provider.shutdown()


@pytest.fixture
def agent(gated: Gated) -> Agent:
    """Return an agent that does one thing in a run."""
    return Agent(gated)


@pytest.fixture
def sender(gated: Gated) -> Iterator[Sender]:
    """Return what sends as a program of a run that goes on."""
    with open_run(gated) as sender:
        yield sender
