"""Guards: a call is asked about before it is made, and told when it is over, in whatever way the block is left."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spangate import SpangateError
from spangate._ledger.guard import current_guard
from spangate.ledger import LedgerError, LedgerLockedError, RetryBlocked, RetryLedger
from spangate.testing import Clock


class UnluckyError(TimeoutError):
    """A failure with a name of its own."""


FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
"""What newer versions of Python say of a fork beside threads, which other tests may have left."""
EXITS = [
    pytest.param(0, {}, "ok", id="0"),
    pytest.param(3, {}, "error", id="3"),
    pytest.param(-9, {}, "error", id="killed"),
    pytest.param(-9, {"timed_out": True}, "timeout", id="time was up"),
]
RAISES = [
    pytest.param(ValueError("x"), "error", None, id="any"),
    pytest.param(TimeoutError(), "timeout", None, id="time was up"),
    pytest.param(UnluckyError(), "timeout", None, id="by what it derives from"),
    pytest.param(subprocess.TimeoutExpired("x", 1), "timeout", None, id="a program's time was up"),
    pytest.param(subprocess.CalledProcessError(7, "x"), "error", 7, id="a program that knows its code"),
    pytest.param(KeyboardInterrupt(), "cancelled", None, id="interrupted"),
    pytest.param(asyncio.CancelledError(), "cancelled", None, id="cancelled"),
    pytest.param(StopIteration(), "control_flow", None, id="control flow"),
    pytest.param(SystemExit(0), "ok", 0, id="an exit"),
    pytest.param(SystemExit(2), "error", 2, id="an exit that fails"),
    pytest.param(SystemExit("no"), "error", 1, id="an exit with words"),
]


@pytest.mark.parametrize(("code", "more", "outcome"), EXITS)
def test_an_exit_code_says_how_it_ended(ledger: RetryLedger, code: int, more: dict[str, bool], outcome: str) -> None:
    with ledger.guard("tool") as call:
        call.exit(code, **more)
    [attempt] = ledger.attempts()
    assert (attempt.outcome, attempt.exit_code) == (outcome, code)


@pytest.mark.parametrize(("error", "outcome", "code"), RAISES)
def test_an_exception_says_how_it_ended(
    ledger: RetryLedger, error: BaseException, outcome: str, code: int | None
) -> None:
    with pytest.raises(type(error)) as raised, ledger.guard("tool"):
        raise error
    assert raised.value is error
    [attempt] = ledger.attempts()
    assert (attempt.outcome, attempt.exit_code) == (outcome, code)


def test_a_failure_that_nobody_raises_can_be_told(ledger: RetryLedger) -> None:
    with ledger.guard("tool") as call:
        call.fail()
    assert ledger.veto("tool")


def test_an_exception_counts_more_than_an_exit_code(ledger: RetryLedger) -> None:
    def work() -> None:
        with ledger.guard("tool") as call:
            call.exit(0)
            raise ValueError("after")

    with pytest.raises(ValueError, match="after"):
        work()
    assert [(attempt.outcome, attempt.exit_code) for attempt in ledger.attempts()] == [("error", 0)]


def test_times_are_those_of_the_clock(path: Path) -> None:
    with closing(RetryLedger(path, clock=Clock(now_ns=1_000, step_ns=10))) as ledger:
        with ledger.guard("tool"):
            pass
        assert [(attempt.started_ns, attempt.ended_ns) for attempt in ledger.attempts()] == [(1_000, 1_010)]


def test_a_guard_is_for_one_call(ledger: RetryLedger) -> None:
    guard = ledger.guard("tool")
    with guard:
        pass
    with pytest.raises(RuntimeError, match="one call"), guard:
        raise AssertionError


def test_a_blocked_call_is_not_written_down(ledger: RetryLedger) -> None:
    with ledger.guard("tool") as call:
        call.exit(1)
    with pytest.raises(RetryBlocked), ledger.guard("tool"):
        raise AssertionError
    assert len(ledger.attempts()) == 1
    assert current_guard() is None


def test_guards_nest(ledger: RetryLedger) -> None:
    with ledger.guard("outer") as outer:
        with ledger.guard("inner") as inner:
            assert current_guard() is inner
            inner.exit(1)
        assert current_guard() is outer
        with pytest.raises(RetryBlocked), ledger.guard("inner"):
            raise AssertionError
        assert current_guard() is outer
    assert current_guard() is None
    assert [(attempt.tool, attempt.outcome) for attempt in ledger.attempts()] == [("outer", "ok"), ("inner", "error")]


def test_the_same_call_inside_of_itself_is_no_retry(ledger: RetryLedger) -> None:
    with ledger.guard("tool"), ledger.guard("tool"):
        pass
    assert [attempt.outcome for attempt in ledger.attempts()] == ["ok", "ok"]


def test_async_guards_do_the_same(ledger: RetryLedger) -> None:
    async def work(code: int) -> None:
        async with ledger.guard("tool", {"code": code}) as call:
            assert current_guard() is call
            await asyncio.sleep(0)
            call.exit(code)
        assert current_guard() is None

    async def main() -> None:
        await asyncio.gather(work(0), work(1), work(2))
        with pytest.raises(RetryBlocked):
            await work(1)
        with pytest.raises(ValueError, match="no"):
            async with ledger.guard("raising"):
                raise ValueError("no")

    asyncio.run(main())
    outcomes = sorted(str(attempt.outcome) for attempt in ledger.attempts())
    assert outcomes == ["error", "error", "error", "ok"]


def test_a_cancelled_task_has_not_failed(ledger: RetryLedger) -> None:
    async def main() -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with ledger.guard("tool"):
                entered.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [attempt.outcome for attempt in ledger.attempts()] == ["cancelled"]
    assert not ledger.veto("tool")


def test_an_event_loop_goes_on_while_somebody_else_has_the_lock(ledger: RetryLedger) -> None:
    with ledger.guard("first"):
        pass
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def main() -> int:
        async def work() -> None:
            async with ledger.guard("tool"):
                pass

        task = asyncio.create_task(work())
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert not task.done()
        other.execute("COMMIT")
        await task
        return len(ledger.attempts())

    assert asyncio.run(main()) == 2
    other.close()


def test_an_async_guard_works_without_asyncio(ledger: RetryLedger) -> None:
    async def work() -> None:
        async with ledger.guard("tool") as call:
            call.exit(1)

    coroutine: Any = work()
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert ledger.veto("tool")


def test_threads_share_a_ledger(ledger: RetryLedger) -> None:
    def work(number: int) -> None:
        for step in range(20):
            with ledger.guard("tool", {"number": number, "step": step}) as call:
                assert current_guard() is call
                call.exit(step % 2)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    attempts = ledger.attempts()
    assert len({attempt.id for attempt in attempts}) == len(attempts) == 160
    assert sum(attempt.outcome == "error" for attempt in attempts) == 80


def test_what_runs_at_the_same_time_is_no_retry_and_what_begins_after_it_is(ledger: RetryLedger) -> None:
    both = threading.Barrier(2)

    def work() -> None:
        with ledger.guard("tool") as call:
            both.wait(30)
            call.exit(1)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work) for _ in range(2)]:
            done.result()
    assert [attempt.outcome for attempt in ledger.attempts()] == ["error", "error"]
    with pytest.raises(RetryBlocked), ledger.guard("tool"):
        raise AssertionError


TWO = """
import sys
from spangate.ledger import RetryBlocked, RetryLedger
try:
    with RetryLedger(sys.argv[1]).guard("tool", "x") as call:
        print("in", flush=True)
        sys.stdin.readline()
        call.exit(1)
    print("ended", flush=True)
except RetryBlocked as refused:
    print("blocked", refused.veto.earlier.id, flush=True)
"""


def test_of_two_processes_that_ask_at_once_both_may_and_the_next_may_not(path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", TWO, path], stdin=pipe, stdout=pipe, text=True)

    def line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with start() as one, start() as other:
        assert [line(one), line(other)] == ["in", "in"]
        assert one.communicate("\n", timeout=30)[0].strip() == "ended"
        with start() as third:  # the other still runs
            assert line(third) in ("blocked 1", "blocked 2")
        other.communicate("\n", timeout=30)


def forked(ledger: RetryLedger, queue: Any) -> None:
    with ledger.guard("child") as call:
        call.exit(1)
    queue.put(len(ledger.attempts()))


@FORKS
def test_a_forked_child_goes_on_with_the_ledger(ledger: RetryLedger) -> None:
    with ledger.guard("parent") as call:
        call.exit(1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=forked, args=(ledger, queue))
    child.start()
    assert queue.get(timeout=30) == 2
    child.join(30)
    assert child.exitcode == 0
    assert ledger.veto("child")
    assert ledger.veto("parent")
    assert [attempt.id for attempt in ledger.attempts()] == [1, 2]


@FORKS
def test_nothing_is_open_while_a_process_forks(ledger: RetryLedger) -> None:
    ledger.attempts()
    with ledger.guard("tool"):
        pid = os.fork()
        if not pid:
            held = [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.exists()]
            os._exit(sum("calls.db" in file.name for file in held))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [attempt.outcome for attempt in ledger.attempts()] == ["ok"]


@FORKS
def test_a_child_that_is_forked_in_the_middle_of_a_write_refuses_the_ledger(
    ledger: RetryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spangate._ledger.store._FORK_S", 0.01)
    with ledger.book.store.writing():
        pid = os.fork()
        if not pid:
            try:
                ledger.attempts()
            except LedgerError as error:
                os._exit(0 if "forked while" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ledger.attempts() == []


def test_an_outcome_that_cannot_be_written_is_raised(path: Path) -> None:
    with closing(RetryLedger(path, busy_timeout_s=0.05)) as ledger, closing(locking(path)) as other:
        with pytest.raises(LedgerLockedError, match="locked"), ledger.guard("tool"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        assert [attempt.outcome for attempt in ledger.attempts()] == [None]


def test_but_not_in_the_place_of_what_the_work_raised(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(RetryLedger(path, busy_timeout_s=0.05)) as ledger, closing(locking(path)) as other:

        def work() -> None:
            with ledger.guard("tool"):
                other.execute("BEGIN IMMEDIATE")
                raise ValueError("the work")

        with caplog.at_level(logging.ERROR), pytest.raises(ValueError, match="the work"):
            work()
        assert "how tool ended could not be written down" in caplog.text


def test_a_row_that_was_forgotten_meanwhile_is_written_anew(ledger: RetryLedger) -> None:
    with ledger.guard("tool") as call:
        ledger.forget_all()
        call.exit(1)
    assert ledger.veto("tool")


def test_a_file_that_was_taken_away_meanwhile_costs_no_row(ledger: RetryLedger, path: Path) -> None:
    with ledger.guard("tool") as call:
        for file in path.parent.iterdir():
            file.unlink()
        with ledger.guard("other"):
            pass
        call.exit(1)
    with closing(RetryLedger(path)) as another:
        assert {attempt.tool: attempt.outcome for attempt in another.attempts()} == {"tool": "error", "other": "ok"}


def test_a_tree_that_cannot_be_read_afterwards_costs_the_call_nothing(
    path: Path, repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(RetryLedger(path, repo=repo)) as ledger:
        with ledger.guard("rm") as call:
            (repo / ".git").rename(repo.parent / "gone")
            call.exit(0)
        [attempt] = ledger.attempts()
        assert (attempt.outcome, attempt.tree_after, attempt.diff_stat) == ("ok", None, None)
        assert "what rm has changed is not known" in caplog.text
        with pytest.raises(SpangateError):
            ledger.veto("rm")


def locking(path: Path) -> sqlite3.Connection:
    with closing(RetryLedger(path)) as made:
        made.attempts()
    return sqlite3.connect(path, isolation_level=None)
