"""Programs are traced by the provider of one test, and by nobody afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spangate import process
from tests.live.gated import Gated
from tests.process.agent import GATES, Agent


@pytest.fixture
def gated() -> Iterator[Gated]:
    """Return a gated provider that traces programs."""
    provider = Gated(gates=GATES, grace_s=1.0)
    process.instrument(provider)
    yield provider
    process.uninstrument()
    process.unwatch()
    provider.shutdown()


@pytest.fixture
def agent(gated: Gated) -> Agent:
    """Return an agent that does one thing in a run."""
    return Agent(gated)
