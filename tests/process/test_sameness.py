"""What a traced call returns, raises and writes is what the plain one does, in corners that its own tests leave out."""

from __future__ import annotations

import asyncio
import collections
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.process.agent import Agent

PATH = os.environ["PATH"]


class Own(subprocess.Popen[bytes]):
    """A class of somebody else's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mine = True


class OwnMapping(collections.UserDict[str, str]):
    """A mapping that is no dict."""


def _interrupted() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        subprocess.run(["sleep", "60"], check=False)
    finally:
        signal.signal(signal.SIGALRM, before)


def _read_in_two() -> Any:
    child = subprocess.Popen(["sh", "-c", "echo a; sleep 0.3; echo b"], stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        child.communicate(timeout=0.05)
    return child.communicate(), child.returncode


def _waited_by_many() -> list[int]:
    child = subprocess.Popen(["sleep", "0.05"])
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(child.wait())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


async def _cancelled() -> Any:
    child = await asyncio.create_subprocess_exec("sleep", "60", stdout=asyncio.subprocess.PIPE)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(child.communicate(), 0.05)
    child.kill()
    return await child.wait(), child.returncode


def _forked() -> int:
    child = subprocess.Popen(["sleep", "0.1"])
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return child.wait()


def sh(**given: Any) -> int:
    return subprocess.run(["sh", "-c", "exit $A"], check=False, **given).returncode


CASES: Mapping[str, Callable[[], object]] = {
    "a subclass": lambda: Own(["true"]).wait(),
    "all by position": lambda: subprocess.Popen(
        *(["sh", "-c", "exit $A"], -1, None, None, None, None, None, True, False, None, {"A": "4", "PATH": PATH})
    ).wait(),
    "an environment that is a mapping": lambda: sh(env=OwnMapping({"A": "5", "PATH": PATH})),
    "an environment of bytes": lambda: sh(env={b"A": b"6", b"PATH": PATH.encode()}),
    "an environment that is none": lambda: sh(env=[("A", "7")]),
    "a value that is no text": lambda: sh(env={"A": 7}),
    "a name that no variable may have": lambda: sh(env={"A=B": "7"}),
    "a name with a null": lambda: sh(env={"A\0": "7"}),
    "arguments from a generator": lambda: subprocess.run((a for a in ("sh", "-c", "exit 8")), check=False).returncode,  # type: ignore[call-overload]
    "no arguments": lambda: subprocess.run([], check=False),
    "a program without a name": lambda: subprocess.run("", check=False),
    "another executable": lambda: subprocess.run(["x", "-c", "exit 2"], executable="/bin/sh", check=False).returncode,
    "a folder that is not there": lambda: subprocess.run(["pwd"], cwd="/no/such/folder", check=False),
    "a file that is no program": lambda: subprocess.run(["/etc/passwd"], check=False),
    "text": lambda: subprocess.run(r"printf 'a\r\nb'", shell=True, capture_output=True, text=True, check=True).stdout,
    "a check": lambda: subprocess.check_output("echo out; exit 4", shell=True),
    "time up": lambda: subprocess.run(["sleep", "60"], timeout=0.05, capture_output=True, check=False),
    "an interrupt": _interrupted,
    "output read in two": _read_in_two,
    "many that wait": _waited_by_many,
    "a task that is cancelled": lambda: asyncio.run(_cancelled()),
    "a fork meanwhile": _forked,
    "a function that sets a variable": lambda: sh(preexec_fn=lambda: os.putenv("A", "9")),
    "a function that raises in the child": lambda: subprocess.run(["true"], preexec_fn=lambda: 1 / 0, check=False),
    "system: quotes": lambda: os.system("""test "it'"'"'s \\$x" = "it'"'"'s \\$x" """),
    "system: lines": lambda: os.system("true\nfalse\nexit 7"),
    "system: bytes": lambda: os.system(b"test '\xff' = '\xff' && exit 2"),
    "system: a null": lambda: os.system("a\0b"),
    "system: a number": lambda: os.system(3),  # type: ignore[arg-type]
    "system: a signal": lambda: os.system("kill -9 $$"),
    "system: nothing": lambda: os.system(""),
    "system: its name": lambda: os.system('test "$0" = sh'),
    "popen: its status": lambda: os.popen("exit 3").close(),
    "a code before there is one": lambda: subprocess.Popen.__new__(subprocess.Popen).returncode,
}


def outcome(case: Callable[[], object]) -> str:
    try:
        return repr(case())
    except BaseException as error:  # noqa: BLE001  whatever is raised is compared
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def plain(name: str) -> str:
    """Return what the plain call does: this fixture comes before the one that instruments."""
    return outcome(CASES[name])


@pytest.fixture
def _no_stderr(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    capfd.readouterr()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_no_stderr")
@pytest.mark.parametrize("name", CASES)
def test_a_traced_call_does_what_the_plain_one_does(plain: str, agent: Agent, name: str) -> None:
    found: list[str] = []
    agent.does(lambda: found.append(outcome(CASES[name])))
    if plain.startswith("TimeoutExpired"):  # it tells how long it waited
        plain, found = plain.partition(" seconds")[0][:40], [found[0][:40]]
    assert found == [plain]
