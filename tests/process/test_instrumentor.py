"""A set-up without code finds the instrumentor, as it finds all others."""

from __future__ import annotations

import subprocess
from importlib.metadata import entry_points

import pytest

from tests.live.gated import Gated
from tests.process.agent import Agent

pytest.importorskip("opentelemetry.instrumentation.instrumentor", reason="no zero-code set-up is installed")


def test_it_is_found_and_traces(gated: Gated, agent: Agent) -> None:
    (found,) = entry_points(group="opentelemetry_instrumentor", name="spangate-process")
    instrumentor = found.load()()
    instrumentor.instrument(tracer_provider=gated)
    try:
        assert instrumentor.instrumentation_dependencies() == ()
        assert len(agent.does(lambda: subprocess.run(["true"], check=True)).programs) == 1
    finally:
        instrumentor.uninstrument()
    assert "returncode" not in vars(subprocess.Popen)
