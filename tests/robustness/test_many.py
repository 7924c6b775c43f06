"""Much at once: many runs, many spans, many threads and tasks. What goes in comes out, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import Span

from spangate import GateSpanProcessor
from tests.live.gated import LONG, Gated, What
from tests.robustness import children

MIB = 1 << 20


def assert_nothing_is_left(gate: GateSpanProcessor) -> None:
    """Check that the gate holds nothing for what is over, but the memory of its latest decisions."""
    buffer, worker = gate._buffer, gate._worker
    (sender,) = gate._sender.senders
    assert repr(buffer) == "<Buffer 0 trees, 0 ended, 0 stirred>"
    assert (buffer.count_spans(), buffer._traces, buffer._late) == (0, {}, {})
    memory = buffer._memory
    assert (memory.awaited, memory._unfinished) == ({}, {})
    assert len(memory._runs) <= memory._max
    assert memory._still == {}
    assert len(memory._newest) <= len(memory._runs) + len(memory._plain)
    settler = worker._settler
    assert (settler._looks._looks, settler._parts._clocks) == ({}, {})
    assert (sender._in_hand, sender._taken_in - sender._dealt_with) == ({}, 0)


def flush(gated: Gated) -> None:
    assert gated.flush(60.0)
    gated.flush(60.0)  # so that everything has been looked at once more


@pytest.mark.parametrize(("what", "runs"), [("agent", 10_000), ("generation", 2_500), ("entry", 1_500)])
def test_runs_that_are_all_open_at_once_are_all_judged(what: What, runs: int) -> None:
    gated = Gated(grace_s=LONG)
    opened = [gated.start(what, f"{number}") for number in range(runs)]
    for number, root in enumerate(opened):
        gated.ended("tool", f"{number}/tool", under=root)
    assert gated.gate._buffer.count_spans() == 2 * runs
    for root in opened:
        root.end()
    flush(gated)
    assert Counter(verdict.verdict for verdict in gated.verdicts) == {"pass": runs}
    assert Counter(gated.names) == Counter(f"{number}{part}" for number in range(runs) for part in ("", "/tool"))
    assert_nothing_is_left(gated.gate)


def test_a_run_that_never_seems_to_end_neither_fills_the_memory_nor_blocks_the_program() -> None:
    spans, bound = 80_000, 16 * MIB
    child = children.run("wide_run", spans, bound)
    assert (child.code, child.errors) == (0, "")
    flushed = child.event("flushed")
    assert flushed["complete"]
    (told,) = child.told.values()  # a tool may have been open just then
    assert {"buffer.overflow", "completeness.root_open"} <= set(told.split())
    assert child.names() == ["refused wide"]
    assert (flushed["withheld"], flushed["losses"]) == (spans + 1, {})
    assert flushed["grown"] < 6 * bound  # the objects of the SDK alone would take more than 200 MiB
    assert flushed["slowest"] < 2.0  # with the garbage collector of a busy machine in it
    assert flushed["held"] == "<Buffer 0 trees, 0 ended, 0 stirred>"


def test_spans_that_nobody_ends_do_not_fill_the_memory() -> None:
    spans, bound = 25_000, 6 * MIB
    child = children.run("leaks", spans, bound)
    assert (child.code, child.errors) == (0, "")
    flushed = child.event("flushed")
    assert flushed["complete"]
    assert flushed["held"] <= 2 * bound // 2048
    assert flushed["grown"] < 8 * bound
    assert set(child.told) <= {"refused leak"}


def test_finalizers_that_end_spans_wherever_the_collector_runs_lose_nothing() -> None:
    child = children.run("finalizers")
    assert (child.code, child.errors) == (0, "")
    flushed = child.event("flushed")
    assert (flushed["complete"], flushed["losses"]) == (True, {})
    verdicts = Counter(span["name"].removeprefix("refused ") for span in child.spans if span["verdict"])
    assert {name for name in verdicts if name.startswith("run")} == {f"run {number}" for number in range(600)}


def test_a_signal_handler_that_records_runs_disturbs_none() -> None:
    child = children.run("signals")
    assert (child.code, child.errors) == (0, "")
    flushed = child.event("flushed")
    assert (flushed["complete"], flushed["losses"]) == (True, {})
    names = Counter(child.names())
    assert names["handler"] == names["handler/0"] == flushed["handled"] >= 300
    assert names["main"] == names["main/0"] == names["main/2"]


def test_spans_that_are_collected_without_an_end_are_told() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        for _ in range(10):
            gated.start("tool", under=agent)
        gc.collect()
    gated.until(lambda: gated.told)
    assert gated.told == {"agent": "fail completeness.open_span"}
    assert gated.verdicts[0].totals.spans_started == 11


# Threads, tasks, pools and generators


def work(gated: Gated, name: str, turns: int) -> None:
    """Record a run the way programs do, with the current span as the parent."""
    tracer = gated.get_tracer("test")
    with tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": "invoke_agent"}):
        for turn in range(turns):
            with tracer.start_as_current_span(f"{name}/{turn}", attributes={"gen_ai.operation.name": "execute_tool"}):
                tracer.start_span(f"{name}/{turn}/inside").end()


def names_of(name: str, turns: int) -> Iterator[str]:
    yield name
    for turn in range(turns):
        yield f"{name}/{turn}"
        yield f"{name}/{turn}/inside"


def check(gated: Gated, runs: int, turns: int) -> None:
    flush(gated)
    assert Counter(verdict.verdict for verdict in gated.verdicts) == {"pass": runs}
    assert Counter(gated.names) == Counter(one for run in range(runs) for one in names_of(f"run {run}", turns))
    assert gated.gate.losses == {}
    assert_nothing_is_left(gated.gate)


def test_threads_lose_nothing() -> None:
    gated = Gated(settle_s=0.0)
    in_threads([lambda number=number: work(gated, f"run {number}", 40) for number in range(12)])  # type: ignore[misc]
    check(gated, 12, 40)


def test_tasks_lose_nothing() -> None:
    gated = Gated(settle_s=0.0)

    async def task(number: int) -> None:
        tracer = gated.get_tracer("test")
        name = f"run {number}"
        with tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": "invoke_agent"}):
            for turn in range(10):
                with tracer.start_as_current_span(f"{name}/{turn}"):
                    await asyncio.sleep(0)
                    tracer.start_span(f"{name}/{turn}/inside").end()

    async def main() -> None:
        await asyncio.gather(*map(task, range(60)))

    asyncio.run(main())
    check(gated, 60, 10)


def test_a_pool_that_works_for_runs_elsewhere_loses_nothing() -> None:
    gated = Gated()
    with ThreadPoolExecutor(8) as pool:
        runs = [gated.start("agent", f"run {number}") for number in range(20)]
        pieces = [pool.submit(piece, gated, run, turn) for turn in range(20) for run in runs]
        for done in pieces:
            done.result()
        for run in runs:
            pool.submit(run.end)
    check(gated, 20, 20)


def piece(gated: Gated, run: Span, turn: int) -> None:
    with trace.use_span(run), gated.open("tool", f"{run.name}/{turn}", under=run) as tool:
        gated.ended("other", f"{run.name}/{turn}/inside", under=tool)


def test_generators_that_take_turns_lose_nothing() -> None:
    gated = Gated()

    def stream(number: int) -> Iterator[None]:
        with gated.open("agent", f"run {number}") as agent:
            for turn in range(10):
                with gated.open("tool", f"run {number}/{turn}", under=agent) as tool:
                    yield
                    gated.ended("other", f"run {number}/{turn}/inside", under=tool)

    streams = [stream(number) for number in range(30)]
    while streams:
        streams = [one for one in streams if next(one, one) is not one]
    check(gated, 30, 10)


def test_flushes_and_starts_at_once_lose_nothing() -> None:
    gated = Gated(settle_s=0.0)
    stop = threading.Event()

    def flusher() -> None:
        while not stop.is_set():
            gated.flush(0.01)
            time.sleep(0.0005)

    thread = threading.Thread(target=flusher)
    thread.start()
    try:
        in_threads([lambda number=number: work(gated, f"run {number}", 30) for number in range(6)])  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()
    check(gated, 6, 30)


def test_threads_that_work_for_a_run_while_it_is_decided_lose_nothing() -> None:
    """Many threads and flushes at once; ``tests/test_buffer.py`` hits the moments at which a hook can be overtaken."""
    gated = Gated(settle_s=0.0, grace_s=0.0, dry_run=True)
    stop = threading.Event()

    def flusher() -> None:
        while not stop.is_set():
            gated.flush(0.05)

    def run(number: int) -> None:
        for one in range(40):
            agent = gated.start("agent", f"run {number}/{one}")
            helper = threading.Thread(target=tools, args=(agent, "aside"))
            helper.start()
            tools(agent, "here")
            agent.end()
            helper.join()

    def tools(agent: Any, where: str) -> None:
        for turn in range(12):
            gated.ended("tool", f"{agent.name}/{where} {turn}", under=agent)

    interval, flushing = sys.getswitchinterval(), threading.Thread(target=flusher)
    sys.setswitchinterval(1e-6)
    try:
        flushing.start()
        in_threads([lambda number=number: run(number) for number in range(4)])  # type: ignore[misc]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        flushing.join()
    flush(gated)
    left = Counter(name for name in gated.names if not name.startswith(("refused", "passed")))
    assert left == Counter(
        name
        for agent in (f"run {number}/{one}" for number in range(4) for one in range(40))
        for name in (agent, *(f"{agent}/{where} {turn}" for where in ("aside", "here") for turn in range(12)))
    )
    assert gated.gate.losses == {}
    assert_nothing_is_left(gated.gate)


def in_threads(tasks: list[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
