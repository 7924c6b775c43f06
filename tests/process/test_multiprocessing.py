"""A process of ``multiprocessing`` is a program of its run, and a task of a pool is in the run of who submitted it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import popen_fork
from multiprocessing.pool import Pool, ThreadPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace

from spangate import process
from spangate._arrival import Arrival, Carried
from spangate.process._instrument import _wanted
from spangate.process._pools import submitting
from spangate.testing import GatedProvider
from tests.live.gated import Gated
from tests.process import crew
from tests.process.agent import Agent

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    # The gate has a thread of its own; what a fork may copy in a bad moment is the business of tests/robustness.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"),
]
INTERPRETER = Path(sys.executable).name


@pytest.fixture(params=crew.METHODS)
def method(request: pytest.FixtureRequest) -> Any:
    """Return the context of one start method after the other."""
    return multiprocessing.get_context(request.param)


def told_by(method: Any, make: Callable[[Any], Any]) -> dict[str, Any]:
    """Start a process that tells where it stands, and return that."""
    receiver, sender = method.Pipe(duplex=False)
    child = make(sender)
    child.start()
    sender.close()
    told: dict[str, Any] = receiver.recv()
    receiver.close()
    child.join()
    return told


def header(of: trace.SpanContext) -> str:
    """Return a context as ``traceparent`` has it."""
    return f"00-{of.trace_id:032x}-{of.span_id:016x}-{of.trace_flags:02x}"


def test_a_process_is_a_program_with_an_exit(agent: Agent, method: Any) -> None:
    child = method.Process(target=crew.leave, args=(1,))
    done = agent.does(lambda: crew.start(child))
    (span,) = done.programs
    assert (span.name, span.kind, span.status.status_code) == (
        INTERPRETER,
        trace.SpanKind.CLIENT,
        trace.StatusCode.ERROR,
    )
    assert child.exitcode == 1
    assert (done.program["process.exit.code"], done.program["error.type"]) == (1, "1")
    assert done.program["process.pid"] == child.pid
    assert done.said == "pass"
    assert done.verdict.gates["exits"] == "pass"


def test_its_child_is_below_its_span_and_knows_its_run(agent: Agent, method: Any) -> None:
    told: list[dict[str, Any]] = []

    def task() -> None:
        token = context.attach(baggage.set_baggage("tenant", "a"))
        told.append(told_by(method, lambda pipe: method.Process(target=crew.tell, args=(pipe,))))
        context.detach(token)

    done = agent.does(task)
    (span,) = done.programs
    invocation_id = done.program["spangate.invocation_id"]
    run_id = done.verdict.run_id
    assert told == [
        {
            "trace_id": span.context.trace_id,
            "parent_id": span.context.span_id,
            "is_remote": True,
            "baggage": {"tenant": "a"},
            "environment": {
                "TRACEPARENT": header(span.context),
                "BAGGAGE": "tenant=a",
                "SPANGATE_RUN_ID": run_id,
                "SPANGATE_INVOCATION_ID": invocation_id,
                "RUN_ID": run_id,
                "INVOCATION_ID": invocation_id,
            },
        }
    ]
    assert done.said == "pass"


def test_stale_context_is_taken_out_of_its_environment(
    agent: Agent, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("traceparent", "BAGGAGE", "SPANGATE_RUN_ID"):
        monkeypatch.setenv(name, "stale")
    before = dict(os.environ)
    told: list[dict[str, Any]] = []
    agent.does(lambda: told.append(told_by(method, lambda pipe: method.Process(target=crew.tell, args=(pipe,)))))
    assert "stale" not in told[0]["environment"].values()
    assert told[0]["baggage"] == {}
    assert dict(os.environ) == before


@pytest.mark.parametrize("kind", [crew.Teller, crew.SpawnedTeller])
def test_a_class_with_a_run_of_its_own_is_no_different(agent: Agent, kind: Callable[[Any], Any]) -> None:
    told: list[dict[str, Any]] = []
    done = agent.does(lambda: told.append(told_by(multiprocessing, kind)))
    (span,) = done.programs
    assert (told[0]["trace_id"], told[0]["parent_id"]) == (span.context.trace_id, span.context.span_id)
    assert done.program["process.exit.code"] == 5


def test_a_process_outside_of_any_trace_has_a_span_and_a_child_that_begins_anew(gated: Gated, method: Any) -> None:
    told = told_by(method, lambda pipe: method.Process(target=crew.tell, args=(pipe,)))
    gated.until_left(INTERPRETER)
    span = gated.one(INTERPRETER)
    assert span.parent is None
    assert told["parent_id"] is None
    assert told["environment"]["TRACEPARENT"].split("-")[1] == f"{span.context.trace_id:032x}"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_is_exit_1(agent: Agent, method: Any) -> None:
    assert agent.does(lambda: crew.start(method.Process(target=crew.fail))).program["process.exit.code"] == 1


def test_a_process_that_a_signal_kills_names_it(agent: Agent, method: Any) -> None:
    child = method.Process(target=crew.kill_itself, args=(signal.SIGTERM,))
    done = agent.does(lambda: crew.start(child))
    assert child.exitcode == -signal.SIGTERM
    assert (done.program["process.exit.code"], done.program["error.type"]) == (-signal.SIGTERM, "SIGTERM")


@pytest.mark.parametrize("end", [BaseProcess.terminate, BaseProcess.kill])
def test_a_process_that_its_run_ends_is_cancelled(agent: Agent, method: Any, end: Callable[[Any], None]) -> None:
    def task() -> None:
        child = method.Process(target=crew.wait)
        child.start()
        end(child)
        child.join()
        child.close()

    done = agent.does(task)
    assert done.program["error.type"] == "cancelled"
    assert done.said == "pass (completeness.cancelled)"


def test_a_process_whose_time_is_up_has_a_status_of_its_own(agent: Agent, method: Any) -> None:
    def task() -> None:
        child = method.Process(target=crew.wait)
        child.start()
        child.join(0.01)
        assert child.is_alive()
        child.terminate()
        child.join()

    assert agent.does(task).program["error.type"] == "timeout"


def test_a_process_that_cannot_be_started_says_so_and_is_no_orphan(agent: Agent) -> None:
    def task() -> None:
        child = multiprocessing.get_context("spawn").Process(target=lambda: None)
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            child.start()
        assert "_spangate_arrival" not in vars(child)

    done = agent.does(task)
    assert done.program["error.type"] in ("PicklingError", "AttributeError")
    assert "exits.orphan" not in done.said


@pytest.mark.parametrize("name", ["fork", "spawn"])
def test_a_run_takes_note_of_a_process_that_nobody_joins(agent: Agent, name: str) -> None:
    method: Any = multiprocessing.get_context(name)
    child = method.Process(target=crew.leave, args=(7,))
    done = agent.does(child.start)
    assert done.program["process.exit.code"] == 7
    child.join()
    assert child.exitcode == 7  # its exit was looked at, and is still there to be joined


def test_one_that_a_server_forked_must_be_asked_for(agent: Agent, gated: Gated) -> None:
    child = multiprocessing.get_context("forkserver").Process(target=crew.leave, args=(7,))

    def task() -> None:
        child.start()
        gated.until(lambda: child not in multiprocessing.active_children())

    assert agent.does(task).program["process.exit.code"] == 7
    assert child.exitcode == 7


def test_a_child_of_a_child_is_below_it(agent: Agent) -> None:
    method = multiprocessing.get_context("fork")

    def between(pipe: Any) -> None:
        pipe.send(trace.get_current_span().get_span_context().span_id)
        inner = method.Process(target=crew.tell, args=(pipe,))
        inner.start()
        inner.join()

    receiver, sender = method.Pipe(duplex=False)
    done = agent.does(lambda: crew.start(method.Process(target=between, args=(sender,))))
    outer, told = receiver.recv(), receiver.recv()
    (span,) = done.programs
    assert outer == span.context.span_id
    assert told["trace_id"] == span.context.trace_id
    assert told["parent_id"] not in (outer, None)


def test_the_watch_is_silent_about_processes_and_pools(agent: Agent, method: Any) -> None:
    def task() -> None:
        crew.start(method.Process(target=crew.add, args=(1,)))
        with method.Pool(1) as pool:
            pool.map(crew.add, [1])

    process.watch()
    assert agent.does(task).said == "pass"


class Shared:
    """A pool of one kind that several runs share."""

    def __init__(self, pool: Any, submit: Callable[[Any, Callable[..., Any]], Any]) -> None:
        self.pool = pool
        self._submit = submit

    def asks(self, function: Callable[..., Any]) -> Any:
        """Have ``function`` done with an argument, and return its result."""
        return self._submit(self.pool, function)


KINDS: dict[str, tuple[str, Callable[[Any, Callable[..., Any]], Any]]] = {
    "submit": ("executor", lambda pool, function: pool.submit(function, 0).result()),
    "executor.map": ("executor", lambda pool, function: next(iter(pool.map(function, [0])))),
    "apply": ("pool", lambda pool, function: pool.apply(function, (0,))),
    "apply_async": ("pool", lambda pool, function: pool.apply_async(func=function, args=(0,)).get()),
    "map": ("pool", lambda pool, function: pool.map(function, [0])[0]),
    "map_async": ("pool", lambda pool, function: pool.map_async(function, [0]).get()[0]),
    "starmap": ("pool", lambda pool, function: pool.starmap(function, [(0,)])[0]),
    "imap": ("pool", lambda pool, function: next(pool.imap(function, [0]))),
    "imap_unordered": ("pool", lambda pool, function: next(iter(pool.imap_unordered(function, [0, 0], chunksize=2)))),
}


def opened(kind: str, method: Any) -> Any:
    return ProcessPoolExecutor(1, mp_context=method) if kind == "executor" else method.Pool(1)


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def shared(gated: Gated, way: str, method: Any) -> Iterator[Shared]:  # noqa: ARG001  the pool is made when instrumented
    """Return a pool that is started outside of any run, as far as its kind starts anything before the first task."""
    kind, submit = KINDS[way]
    with opened(kind, method) as pool:
        yield Shared(pool, submit)
        if kind == "pool":
            pool.close()
            pool.join()


def test_each_task_is_in_the_run_of_who_submitted_it(agent: Agent, gated: Gated, shared: Shared) -> None:
    told: list[dict[str, Any]] = []
    for tenant in ("a", "b"):

        def task(tenant: str = tenant) -> None:
            with gated.open("tool", "tool", trace.get_current_span()) as tool, trace.use_span(tool):  # type: ignore[arg-type]
                token = context.attach(baggage.set_baggage("tenant", tenant))
                told.append({**shared.asks(crew.stand), "above": tool.context.span_id})
                context.detach(token)

        done = agent.does(task)
        assert done.said == "pass"
        assert done.programs == []
        assert told[-1]["trace_id"] == done.spans[0].context.trace_id
        assert (told[-1]["parent_id"], told[-1]["is_remote"]) == (told[-1]["above"], True)
        assert told[-1]["baggage"] == {"tenant": tenant}
    assert len(crew.traces(told)) == 2
    assert shared.asks(crew.is_traced) is False, "the worker has kept the context of its last task"


def test_the_exception_of_a_task_is_its_own(agent: Agent, shared: Shared) -> None:
    def task() -> None:
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            shared.asks(crew.divide)

    assert agent.does(task).said == "pass"


def submitted(function: Callable[..., Any]) -> Any:
    """Return what becomes of a function that is submitted to a pool."""
    return submitting(0)(lambda given: given)(function)


def refusal(shared: Shared) -> str:
    with pytest.raises((pickle.PicklingError, AttributeError)) as raised:
        shared.asks(UNPICKLABLE)
    return f"{type(raised.value).__name__}: {raised.value}"


UNPICKLABLE = lambda number: number  # noqa: E731  a function without a name cannot be pickled


def test_a_task_that_cannot_be_pickled_is_refused_as_ever(agent: Agent, shared: Shared) -> None:
    found: list[str] = []
    agent.does(lambda: found.append(refusal(shared)))
    process.uninstrument()
    assert found == [refusal(shared)]


@pytest.mark.parametrize("kind", ["executor", "pool"])
def test_a_pool_that_outlives_its_run_is_no_program_of_it(agent: Agent, kind: str, method: Any) -> None:
    pools: list[Any] = []
    told: list[Any] = []
    submit = KINDS["submit" if kind == "executor" else "apply"][1]

    def task() -> None:
        pools.append(opened(kind, method))
        told.append(submit(pools[0], crew.stand))

    done = agent.does(task)
    with pools[0]:
        assert (done.said, done.programs) == ("pass", [])
        run = done.spans[-1].context
        assert told[0]["environment"] == {
            "TRACEPARENT": header(run),
            "SPANGATE_RUN_ID": done.verdict.run_id,
            "RUN_ID": done.verdict.run_id,
        }
        assert submit(pools[0], crew.is_traced) is False
        if kind == "pool":
            pools[0].close()
            pools[0].join()


def test_a_worker_keeps_nothing_of_the_run_that_started_it(agent: Agent, method: Any) -> None:
    pools: list[Any] = []

    def task() -> None:
        token = context.attach(baggage.set_baggage("tenant", "a"))
        pools.append(method.Pool(1))
        context.detach(token)

    agent.does(task)
    with pools[0] as pool:
        told: list[dict[str, Any]] = []
        done = agent.does(lambda: told.append(pool.apply(crew.stand)))
        assert (told[0]["trace_id"], told[0]["baggage"]) == (done.spans[-1].context.trace_id, {})
        pool.close()
        pool.join()


def test_without_a_span_a_task_is_what_it_was() -> None:
    assert submitted(crew.add) is crew.add


def test_who_wants_no_tracing_has_none(agent: Agent, method: Any) -> None:
    told: list[dict[str, Any]] = []

    def task() -> None:
        token = context.attach(context.set_value("suppress_instrumentation", True))  # noqa: FBT003  a context value
        told.append(told_by(method, lambda pipe: method.Process(target=crew.tell, args=(pipe,))))
        with method.Pool(1) as pool:
            told.append(pool.apply(crew.stand))
            pool.close()
            pool.join()
        assert submitted(crew.add) is crew.add
        context.detach(token)

    assert agent.does(task).programs == []
    assert [one["environment"] for one in told] == [{}, {}]


def test_a_manager_is_no_program_of_its_run(agent: Agent, method: Any) -> None:
    managers: list[Any] = []
    done = agent.does(lambda: managers.append(method.Manager()))
    managers[0].shutdown()
    assert (done.said, done.programs) == ("pass", [])


def test_a_pool_of_threads_is_left_alone(agent: Agent) -> None:
    seen: list[Any] = []

    def task() -> None:
        with ThreadPool(1) as pool:
            seen.extend(pool.map(crew.is_traced, [0]))
            seen.append(pool.apply(crew.is_traced))

    agent.does(task)
    assert seen == [False, False]


def test_a_provider_for_tests_sees_the_same() -> None:
    with GatedProvider() as provider:
        process.instrument(provider)
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
            crew.start(multiprocessing.get_context("fork").Process(target=crew.leave, args=(1,)))
        process.uninstrument()
    provider.assert_released()
    assert [span.name for span in provider.released] == [INTERPRETER, "agent"]


BARE = """
import os, pickle
task = pickle.loads(bytes.fromhex("{}"))
print(os.environ["TRACEPARENT"], task and task(4, 2))
"""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Arrival({"TRACEPARENT": "new"}, ["TRACEPARENT"], continues=True), "new None"),
        (Carried(pow, {"traceparent": "new"}), "old 16"),
    ],
)
def test_a_child_that_finds_nothing_of_ours_does_its_work(told: object, said: str) -> None:
    pickled = pickle.dumps(told).hex()
    printed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BARE.format(pickled)],
        capture_output=True,
        text=True,
        check=True,
        env={"TRACEPARENT": "old"},
    ).stdout
    assert printed.strip() == said


def test_what_is_instrumented_is_put_back() -> None:
    process.uninstrument()
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in _wanted()]
    assert {owner for owner, _, _ in before} >= {BaseProcess, popen_fork.Popen, Pool, ProcessPoolExecutor}
    process.instrument()
    assert all(vars(owner)[name] is not was for owner, name, was in before)
    process.uninstrument()
    assert [(owner, name, vars(owner).get(name)) for owner, name, _ in before] == before
