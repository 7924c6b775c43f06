"""Steps that a loop's rules refuse: each is an error that says what to do, and changes nothing else."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, TypeAlias

import pytest
from opentelemetry import context

import spangate
from spangate import SpangateError
from spangate.testing import GatedProvider

Step: TypeAlias = "Callable[[Any, Any, GatedProvider], object]"


def again(run: Any, _it: Any, _provider: GatedProvider) -> None:
    run.iterations()


def enter_again(run: Any, _it: Any, _provider: GatedProvider) -> None:
    run.__enter__()


def another_iteration(run: Any, _it: Any, _provider: GatedProvider) -> None:
    with run.iteration():
        pass


def halt_inside_a_tool(run: Any, it: Any, _provider: GatedProvider) -> None:
    with it.tool("look"):
        run.halt("done")


def next_inside_a_tool(_run: Any, it: Any, _provider: GatedProvider) -> None:
    with it.tool("look"):
        it.end()


def halt_twice(run: Any, _it: Any, _provider: GatedProvider) -> None:
    run.halt("done")
    run.halt("timeout")


def tool_after_the_halt(run: Any, it: Any, _provider: GatedProvider) -> None:
    run.halt("done")
    with it.tool("look"):
        pass


def model_after_the_halt(run: Any, it: Any, _provider: GatedProvider) -> None:
    run.halt("done")
    with it.llm("small", "hello"):
        pass


def iteration_after_the_halt(run: Any, it: Any, provider: GatedProvider) -> None:
    run.halt("done")
    another_iteration(run, it, provider)


def tool_in_an_iteration_that_is_over(run: Any, it: Any, _provider: GatedProvider) -> None:
    it.end()
    with run.iteration(), it.tool("look"):
        pass


def one_too_many(run: Any, it: Any, _provider: GatedProvider) -> None:
    it.end()
    for _ in range(2):
        with run.iteration():
            pass


def a_call_twice(_run: Any, it: Any, _provider: GatedProvider) -> None:
    tool = it.tool("look")
    for _ in range(2):
        with tool:
            pass


def a_result_before_the_call(_run: Any, it: Any, _provider: GatedProvider) -> None:
    it.tool("look").result("12")


def no_bound(_run: Any, _it: Any, provider: GatedProvider) -> None:
    with spangate.run(tracer_provider=provider) as inner:
        inner.iterations()


def not_entered(_run: Any, _it: Any, provider: GatedProvider) -> None:
    spangate.run(max_iters=1, tracer_provider=provider).iterations()


def halted_before_it_was_entered(_run: Any, _it: Any, provider: GatedProvider) -> None:
    spangate.run(max_iters=1, tracer_provider=provider).halt("done")


def a_run_that_is_over(_run: Any, _it: Any, provider: GatedProvider) -> None:
    with spangate.run(max_iters=1, tracer_provider=provider) as inner:
        loop = inner.iterations()
    next(loop)


def left_around_a_tool(_run: Any, _it: Any, provider: GatedProvider) -> None:
    with ExitStack() as later, spangate.run(max_iters=1, tracer_provider=provider) as inner:
        for turn in inner.iterations():
            later.enter_context(turn.tool("fetch"))
            break


REFUSED = [
    (again, "iterations() was called before: a run has one loop; for another, open another run"),
    (enter_again, "a run is entered once: call spangate.run(...) again for another"),
    (another_iteration, "iteration 1 is still open: leave its block first"),
    (halt_inside_a_tool, "halt('done') while tool 'look' of iteration 1 is open: leave its with block first"),
    (next_inside_a_tool, "the iteration is ended while tool 'look' of iteration 1 is open: leave its with block first"),
    (halt_twice, "halt('timeout') after halt('done'): a run halts once, for one reason"),
    (tool_after_the_halt, "the run has halted ('done') and does nothing more: call halt() last"),
    (model_after_the_halt, "the run has halted ('done') and does nothing more: call halt() last"),
    (iteration_after_the_halt, "the run has halted ('done') and does nothing more: call halt() last"),
    (tool_in_an_iteration_that_is_over, "tool 'look' is outside an iteration (1 is over): do it in one that is open"),
    (one_too_many, "max_iters=2 are used up: halt the run, with 'budget_exhausted' or 'done'"),
    (a_call_twice, "tool 'look' was entered before: make another for another call"),
    (a_result_before_the_call, "tool 'look' has not begun: write 'with' before it"),
    (no_bound, "the loop has no bound: write how many iterations it may take, as max_iters=8"),
    (not_entered, "the run has not begun: write 'with spangate.run(...) as run:' around its loop"),
    (halted_before_it_was_entered, "the run has not begun: write 'with spangate.run(...) as run:' around its loop"),
    (a_run_that_is_over, "the run is over: keep its work inside the with block of spangate.run(...)"),
    (left_around_a_tool, "the run is left while tool 'fetch' of iteration 1 is open: leave its with block first"),
]


@pytest.mark.parametrize(("step", "said"), REFUSED, ids=[step.__name__ for step, _ in REFUSED])
def test_it_is_refused_with_what_to_do(step: Step, said: str) -> None:
    before = context.get_current()
    with GatedProvider() as provider, spangate.run(max_iters=2, tracer_provider=provider) as run:
        for it in run.iterations():
            with pytest.raises(SpangateError, match=re.escape(said)):
                step(run, it, provider)
            break
        if run.halted is None:
            run.halt("done")
    assert context.get_current() == before
    assert provider.verdicts
    assert not [one for one in provider.verdicts[0].failures if one.code.startswith("completeness.open")]


def test_the_next_iteration_waits_for_no_work_in_a_thread() -> None:
    """The refusal leaves the loop; the thread's tool ends by itself, and the verdict says what was open."""
    begun, go_on = threading.Event(), threading.Event()

    def work(it: Any) -> None:
        with it.tool("slow"):
            begun.set()
            go_on.wait(10)

    def agent(provider: GatedProvider, threads: list[threading.Thread]) -> None:
        with spangate.run(max_iters=2, tracer_provider=provider) as run:
            for it in run.iterations():
                threads.append(threading.Thread(target=work, args=(it,)))
                threads[-1].start()
                assert begun.wait(10)

    threads: list[threading.Thread] = []
    with GatedProvider() as provider:
        with pytest.raises(SpangateError, match="tool 'slow' of iteration 1 is open"):
            agent(provider, threads)
        go_on.set()
        threads[0].join(10)
    provider.assert_refused("halt.open_iteration")
    assert len(threads) == 1


def test_a_tool_whose_schema_changes_is_not_called_and_the_run_halts() -> None:
    called: list[int] = []

    def agent(provider: GatedProvider) -> None:
        with spangate.run(max_iters=3, tracer_provider=provider) as run:
            for it in run.iterations():
                with it.tool("look", schema={"version": it.number // 2}):
                    called.append(it.number)

    with GatedProvider() as provider, pytest.raises(SpangateError, match="the schema of tool 'look' has changed"):
        agent(provider)
    provider.assert_refused("halt.schema_drift")
    assert called == [1]


def test_a_loop_that_makes_light_of_it_ends_all_the_same() -> None:
    turns = 0
    with GatedProvider() as provider, spangate.run(max_iters=5, tracer_provider=provider) as run:
        for it in run.iterations():
            turns += 1
            with suppress(SpangateError), it.tool("look", schema={"turn": it.number}):
                pass
    assert (turns, run.halted) == (2, "schema_drift")
    provider.assert_refused("halt.schema_drift")


def test_a_reason_that_is_none_is_recorded_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    with GatedProvider() as provider, spangate.run(max_iters=1, tracer_provider=provider) as run:
        for _ in run.iterations():
            run.halt("finished")
    assert run.halted == "unknown"
    assert "halt('finished')" in caplog.text
    provider.assert_refused("halt.unknown_reason")


def test_a_halt_that_gives_up_on_open_work_says_so() -> None:
    with GatedProvider() as provider:
        with spangate.run(max_iters=1, tracer_provider=provider) as run:
            it = next(run.iterations())
            tool = it.tool("hangs")
            tool.__enter__()
            run.halt("timeout")
        before = context.get_current()
        tool.__exit__(None, None, None)
        assert context.get_current() == before
    provider.assert_refused("halt.open_iteration")
