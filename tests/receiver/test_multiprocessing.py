"""Processes of ``multiprocessing`` and workers of pools: what they record is in the run that they work for."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.live.gated import Gated
from tests.process.agent import Agent, Done
from tests.receiver.workers import inherited, work

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*use of fork:DeprecationWarning"
)  # of a process with threads: ours has


@pytest.fixture(params=["fork", "spawn"])
def method(request: pytest.FixtureRequest, gated: Gated) -> Iterator[Any]:
    """Return a way to start processes. Those that are forked have the provider of the test."""
    if request.param == "fork":
        inherited.append(gated)
    yield multiprocessing.get_context(request.param)
    inherited.clear()


def names(done: Done) -> list[str]:
    return sorted(span.name for span in done.spans if span not in done.programs)


def workers(done: Done) -> set[object]:
    return {(span.attributes or {})["worker"] for span in done.spans if "execute_tool" in span.name}


def test_a_process(agent: Agent, method: Any) -> None:
    def start() -> None:
        process = method.Process(target=work, args=("one",))
        process.start()
        process.join()
        assert process.exitcode == 0

    done = agent.does(start)
    assert done.said == "pass"
    assert names(done) == ["agent", "execute_tool one"]
    (program,) = done.programs
    (tool,) = [span for span in done.spans if span.name == "execute_tool one"]
    assert tool.parent is not None
    assert tool.parent.span_id == program.context.span_id
    assert workers(done) != {os.getpid()}


def test_a_pool_of_one_run(agent: Agent, method: Any) -> None:
    def start() -> None:
        with method.Pool(2) as pool:
            pool.map(work, ["one", "two", "three"])

    done = agent.does(start)
    assert done.said == "pass"
    assert names(done) == ["agent", "execute_tool one", "execute_tool three", "execute_tool two"]
    assert done.programs == []


def test_an_executor_that_serves_one_run_after_another(agent: Agent, method: Any) -> None:
    with ProcessPoolExecutor(1, mp_context=method) as pool:
        first = agent.does(lambda: pool.submit(work, "one").result())
        second = agent.does(lambda: pool.submit(work, "two").result())
    assert (first.said, second.said) == ("pass", "pass")
    assert (names(first), names(second)) == (["agent", "execute_tool one"], ["agent", "execute_tool two"])
    assert workers(first) == workers(second)


def test_an_executor_that_was_there_before_any_run(agent: Agent, gated: Gated) -> None:
    inherited.append(gated)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        pool.submit(os.getpid).result()
        done = agent.does(lambda: pool.submit(work, "one").result())
    inherited.clear()
    assert done.said == "pass"
    assert names(done) == ["agent", "execute_tool one"]
