"""What is recorded comes again, in whatever order it is asked for, and nothing else happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spangate import tape
from spangate.tape import ReplayMiss, TapeError, tape_key

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def never() -> Any:
    raise AssertionError("a replay lets nothing happen")


async def anever() -> Any:
    raise AssertionError("a replay lets nothing happen")


@pytest.mark.parametrize("row", VECTORS["tape_key"], ids=lambda row: row["key"])
def test_keys_are_those_that_everybody_computes(row: dict[str, Any]) -> None:
    assert tape_key(row["kind"], row["payload"]) == row["key"]


def test_a_replay_gives_what_was_recorded_and_calls_nobody(cassette: Path) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    with tape.record(cassette) as recording:
        assert recording.call("llm", asked, lambda: {"text": "hello"}) == {"text": "hello"}
        assert recording.call("tool", {"name": "read"}, lambda: b"\x00\xff") == b"\x00\xff"
    with tape.replay(cassette) as replaying:
        assert replaying.call("llm", asked, never) == {"text": "hello"}
        assert replaying.call("tool", {"name": "read"}, never) == b"\x00\xff"
        assert replaying.report.is_same
    assert replaying.digest == recording.digest


def test_a_decision_that_comes_again_is_told_from_its_first_time(cassette: Path) -> None:
    answers = iter(["one", "two", "three"])
    with tape.record(cassette) as recording:
        first = [recording.call("tool", {"name": "poll"}, lambda: next(answers)) for _ in range(3)]
    with tape.replay(cassette) as replaying:
        assert [replaying.call("tool", {"name": "poll"}, never) for _ in range(3)] == first
        with pytest.raises(ReplayMiss, match=r"3 of 3 decisions agreed"):
            replaying.call("tool", {"name": "poll"}, never)


def test_a_step_of_ones_own_is_taken_at_its_word_and_equal_keys_queue(cassette: Path) -> None:
    answers = iter("ab")
    with tape.record(cassette) as recording:
        for _ in range(2):
            recording.call("llm", {"q": "?", "step": 1}, lambda: next(answers))
    with tape.replay(cassette) as replaying:
        assert [replaying.call("llm", {"q": "?", "step": 1}, never) for _ in range(2)] == ["a", "b"]


def test_an_idempotency_key_is_part_of_the_decision(cassette: Path) -> None:
    with tape.record(cassette) as recording:
        recording.call("tool", {"name": "pay"}, lambda: "paid", idempotency_key="k1")
    with tape.replay(cassette, left_over="ignore") as replaying, pytest.raises(ReplayMiss, match="'k1' was recorded"):
        replaying.call("tool", {"name": "pay"}, never, idempotency_key="k2")


def test_what_is_no_json_is_turned_into_it_and_back(cassette: Path) -> None:
    with tape.record(cassette) as recording:
        recording.call("tool", {"name": "where"}, lambda: Path("a"), dump=str)
    with tape.replay(cassette) as replaying:
        assert replaying.call("tool", {"name": "where"}, never, load=Path) == Path("a")


class Odd(Exception):  # noqa: N818  it is odd
    pass


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("no", 3), ValueError, ("no", 3)),
        (FileNotFoundError(2, "No such file"), FileNotFoundError, (2, "No such file")),
        (KeyError("k"), KeyError, ("k",)),
        (Odd("of mine"), tape.ReplayedError, ("tests.tape.test_decisions.Odd", "of mine")),
    ],
)
def test_an_error_comes_again(
    cassette: Path, error: Exception, kind: type[Exception], message: tuple[Any, ...]
) -> None:
    def fail() -> None:
        raise error

    with tape.record(cassette) as recording, pytest.raises(type(error)):
        recording.call("tool", {"name": "x"}, fail)
    with tape.replay(cassette) as replaying, pytest.raises(kind) as caught:
        replaying.call("tool", {"name": "x"}, never)
    assert caught.value.args == message


def test_an_error_that_names_something_dangerous_is_not_made(cassette: Path) -> None:
    with tape.record(cassette) as recording:
        recording.call("tool", {"name": "x"}, lambda: 1)
    text = cassette.read_text().replace('"value":1', '"error":{"type":"builtins.exec","args":["boom"],"message":"m"}')
    cassette.write_text(text)
    with tape.replay(cassette) as replaying, pytest.raises(tape.ReplayedError, match=r"builtins.exec: m"):
        replaying.call("tool", {"name": "x"}, never)


def test_a_call_that_is_interrupted_was_no_decision(cassette: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with tape.record(cassette) as recording, pytest.raises(KeyboardInterrupt):
        recording.call("tool", {"name": "x"}, interrupted)
    assert tape.read_cassette(cassette).decisions == []


class TestStreams:
    def test_come_piece_by_piece(self, cassette: Path) -> None:
        with tape.record(cassette) as recording:
            assert list(recording.stream("llm", {"q": 1}, lambda: iter(["a", b"b"]))) == ["a", b"b"]
        with tape.replay(cassette) as replaying:
            assert list(replaying.stream("llm", {"q": 1}, never)) == ["a", b"b"]
        assert replaying.digest == recording.digest

    def test_that_were_left_early_hold_what_was_read(self, cassette: Path) -> None:
        with tape.record(cassette) as recording:
            stream = recording.stream("llm", {"q": 1}, lambda: iter("abc"))
            assert next(stream) == "a"
            stream.close()  # type: ignore[attr-defined]
        (decision,) = tape.read_cassette(cassette).decisions
        assert (decision.outcome.chunks, decision.outcome.is_partial) == (["a"], True)
        with tape.replay(cassette) as replaying:
            assert list(replaying.stream("llm", {"q": 1}, never)) == ["a"]

    def test_that_break_off_break_off_again(self, cassette: Path) -> None:
        def breaks() -> Iterator[str]:
            yield "a"
            raise ConnectionResetError(104, "reset")

        with tape.record(cassette) as recording, pytest.raises(ConnectionResetError):
            list(recording.stream("llm", {"q": 1}, breaks))
        with tape.replay(cassette) as replaying:
            stream = replaying.stream("llm", {"q": 1}, never)
            assert next(stream) == "a"
            with pytest.raises(ConnectionResetError):
                next(stream)

    def test_of_tasks_do_the_same(self, cassette: Path) -> None:
        async def pieces() -> AsyncIterator[str]:
            for piece in "ab":
                yield piece

        async def read(either: tape.Tape, do: Callable[[], AsyncIterator[str]]) -> list[str]:
            return [piece async for piece in either.astream("llm", {"q": 1}, do)]

        with tape.record(cassette) as recording:
            assert asyncio.run(read(recording, pieces)) == ["a", "b"]
        with tape.replay(cassette) as replaying:
            assert asyncio.run(read(replaying, never)) == ["a", "b"]


def test_parallel_calls_are_told_apart_whatever_their_order(cassette: Path) -> None:
    """Tools of one turn: recorded by threads, replayed by tasks, the other way round."""
    with tape.record(cassette) as recording, ThreadPoolExecutor(8) as pool:
        names = [f"t{number}" for number in range(40)]
        first = list(pool.map(lambda name: recording.call("tool", {"name": name}, name.upper), names))

    async def everything(replaying: tape.Tape) -> list[Any]:
        return await asyncio.gather(*(replaying.acall("tool", {"name": name}, anever) for name in reversed(names)))

    for _ in range(10):
        with tape.replay(cassette, left_over="raise") as replaying:
            assert asyncio.run(everything(replaying)) == first[::-1]
        assert replaying.digest == recording.digest


class TestMisses:
    @pytest.fixture
    def recorded(self, cassette: Path) -> Path:
        with tape.record(cassette) as recording:
            for turn in range(3):
                asked = {"messages": [{"role": "user", "content": f"turn {turn}"}], "model": "small"}
                recording.call("llm", asked, lambda: "…")
        return cassette

    def test_say_how_far_the_run_agreed_and_what_differs(self, recorded: Path) -> None:
        with tape.replay(recorded, left_over="ignore") as replaying:
            for turn in range(2):
                asked = {"messages": [{"role": "user", "content": f"turn {turn}"}], "model": "small"}
                replaying.call("llm", asked, never)
            with pytest.raises(ReplayMiss) as caught:
                replaying.call("llm", {**asked, "messages": [{"role": "user", "content": "edited"}]}, never)
        miss = caught.value
        assert (miss.agreed, miss.recorded) == (2, 3)
        assert miss.nearest == tape.read_cassette(recorded).decisions[2].key
        assert miss.difference == "$.messages[0].content: 'turn 2' was recorded, 'edited' is here"
        assert [one.key for one in replaying.report.misses] == [miss.key]
        assert "2 of 3 decisions agreed before it; nearest is llm:" in str(miss)

    def test_name_a_key_that_is_new(self, recorded: Path) -> None:
        asked = {"messages": [{"role": "user", "content": "turn 0"}], "model": "small", "seed": 1}
        with (
            tape.replay(recorded, left_over="ignore") as replaying,
            pytest.raises(ReplayMiss, match=r"\$\.seed is new"),
        ):
            replaying.call("llm", asked, never)

    def test_of_a_kind_that_was_not_recorded_have_nothing_near(self, recorded: Path) -> None:
        with (
            tape.replay(recorded, left_over="ignore") as replaying,
            pytest.raises(ReplayMiss, match="no recorded decision of kind 'tool' is left"),
        ):
            replaying.call("tool", {"name": "x"}, never)


class TestWhatIsLeftOver:
    @pytest.fixture
    def recorded(self, cassette: Path) -> Path:
        with tape.record(cassette) as recording:
            for number in range(5):
                recording.call("tool", {"name": f"t{number}"}, lambda: 1)
        return cassette

    def test_is_told_at_the_end(self, recorded: Path, caplog: pytest.LogCaptureFixture) -> None:
        with tape.replay(recorded, commit="ignore") as replaying:
            replaying.call("tool", {"name": "t0"}, never)
        (told,) = (record.getMessage() for record in caplog.records)
        assert told.startswith("4 recorded decisions never made: tool:")
        assert told.endswith(", 1 more")
        report = replaying.report
        assert (report.agreed, report.recorded, len(report.left), report.is_same) == (1, 5, 4, False)

    def test_is_an_error_where_that_is_wanted(self, recorded: Path) -> None:
        with pytest.raises(tape.LeftOverError, match="5 recorded decisions"), tape.replay(recorded, left_over="raise"):
            pass

    def test_hides_no_other_error(self, recorded: Path) -> None:
        with pytest.raises(ZeroDivisionError), tape.replay(recorded, left_over="raise"):
            raise ZeroDivisionError


class TestTheEnvironment:
    def test_is_read_through_the_tape_and_compared(
        self, cassette: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("MODEL", "small-secret-name")
        with tape.record(cassette, environment=["MODEL"]) as recording:
            assert recording.environ("MODEL") == "small-secret-name"
        assert "small-secret-name" not in cassette.read_text()
        with tape.replay(cassette, environment=["MODEL"], commit="ignore") as replaying:
            assert replaying.environ("MODEL") == "small-secret-name"
        assert caplog.records == []
        monkeypatch.setenv("MODEL", "large")
        with tape.replay(cassette, environment=["MODEL"], commit="ignore") as replaying:
            assert replaying.environ("MODEL") == "large"
        assert replaying.report.environment == ("MODEL",)
        assert [record.getMessage() for record in caplog.records] == [
            "MODEL has another value than when the cassette was recorded"
        ]
        with (
            tape.replay(cassette, environment=["MODEL"], changed_environment="raise") as replaying,
            pytest.raises(TapeError, match="another value"),
        ):
            replaying.environ("MODEL")

    def test_has_a_list_of_what_may_be_read(self, cassette: Path) -> None:
        with tape.record(cassette) as recording, pytest.raises(TapeError, match="add it to environment="):
            recording.environ("HOME")


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"messages": [{"content": {1, 2}}]}, r"\$\.messages\[0\]\.content: set"),
        ({"n": float("nan")}, r"\$\.n: nan"),
        ({"a": {1: 2, "b": object()}}, r"\$\.a: a key of type int|\$\.a\.b: object"),
        ({"f": never}, r"\$\.f: function"),
    ],
)
def test_what_decides_has_to_be_json_before_anything_happens(cassette: Path, payload: Any, place: str) -> None:
    with tape.record(cassette) as recording, pytest.raises(TapeError, match=place):
        recording.call("llm", payload, never)
    assert tape.read_cassette(cassette).decisions == []


def test_a_result_has_to_be_json(cassette: Path) -> None:
    with tape.record(cassette) as recording, pytest.raises(TapeError, match=r"dump and load.*: \$\.x: object"):
        recording.call("tool", {"name": "x"}, lambda: {"x": object()})
