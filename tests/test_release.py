"""Handing over: in order, in bounded chunks, every span once, and every parcel told once what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangate._buffer.tree import SPAN_OVERHEAD
from spangate._release import CHUNK_BYTES, CHUNK_SPANS, Sender
from spangate._release.chunks import Parcel
from spangate._release.flush import Flush
from spangate._release.tries import TRIES

Answer = Callable[[Sequence[str]], SpanExportResult | None]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.0)


@dataclass
class Scripted(SpanExporter):
    """Takes names for spans, and answers as it is told: None means success."""

    answer: Answer = lambda _spans: None
    accepted: list[list[str]] = field(default_factory=list)
    calls: int = 0
    flushes: bool | None = True

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        self.calls += 1
        answer = self.answer(spans)
        if answer is not None:
            return answer
        self.accepted.append(list(spans))
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002  the interface's name
        return self.flushes  # type: ignore[return-value]  # anybody's exporter may say anything


@dataclass
class Told:
    """What parcels were told, by their names."""

    lines: list[str] = field(default_factory=list)

    def parcel(self, name: str, sizes: Sequence[int], instead: Parcel | None = None) -> Parcel:
        def refused(sent: int, why: str) -> Parcel | None:
            self.lines.append(f"{name}: {sent} of {len(sizes)}, {why}")
            return instead

        spans = [f"{name}{number}" for number in range(len(sizes))]
        return Parcel(spans, sizes, lambda: self.lines.append(f"{name}: all"), refused)


def sent(exporter: Scripted, *parcels: Parcel, max_bytes: int = 1 << 40) -> Sender:
    sender = Sender(exporter, max_bytes)
    for parcel in parcels:
        sender.put(parcel)
    sender.drain()
    return sender


def fails(_spans: Sequence[str]) -> SpanExportResult:
    return SpanExportResult.FAILURE


def raises(error: BaseException) -> Answer:
    def answer(_spans: Sequence[str]) -> SpanExportResult:
        raise error

    return answer


SIZES = st.lists(st.integers(0, CHUNK_BYTES // 3), max_size=40) | st.lists(st.just(1), max_size=2000)


@given(st.lists(SIZES, max_size=8))
def test_chunks_keep_the_order_hold_every_span_once_and_are_bounded(sizes: list[list[int]]) -> None:
    told, exporter = Told(), Scripted()
    parcels = [told.parcel(f"{number}-", row) for number, row in enumerate(sizes)]
    sent(exporter, *parcels)
    assert [span for chunk in exporter.accepted for span in chunk] == [span for one in parcels for span in one.spans]
    weights = {span: size for one in parcels for span, size in zip(one.spans, one.sizes, strict=True)}
    for chunk in exporter.accepted:
        assert 0 < len(chunk) <= CHUNK_SPANS
        assert sum(weights[span] for span in chunk) <= CHUNK_BYTES
    assert sorted(told.lines) == sorted(f"{number}-: all" for number in range(len(sizes)))


@given(st.lists(SIZES, max_size=8))
def test_chunks_are_as_full_as_they_may_be(sizes: list[list[int]]) -> None:
    told, exporter = Told(), Scripted()
    parcels = [told.parcel(f"{number}-", row) for number, row in enumerate(sizes)]
    sent(exporter, *parcels)
    weights = {span: size for one in parcels for span, size in zip(one.spans, one.sizes, strict=True)}
    for chunk, following in zip(exporter.accepted, exporter.accepted[1:], strict=False):
        is_full = len(chunk) == CHUNK_SPANS
        assert is_full or sum(weights[span] for span in [*chunk, following[0]]) > CHUNK_BYTES


def test_a_span_larger_than_a_chunk_leaves_by_itself() -> None:
    told, exporter = Told(), Scripted()
    sent(exporter, told.parcel("a", [1, 2 * CHUNK_BYTES, 1]))
    assert exporter.accepted == [["a0"], ["a1"], ["a2"]]


@given(st.lists(st.integers(0, 1500), min_size=1, max_size=5), st.integers(0, 12))
def test_whatever_call_fails_each_parcel_hears_once_how_much_of_it_arrived(rows: list[int], good_calls: int) -> None:
    told = Told()

    def answer(_spans: Sequence[str]) -> SpanExportResult | None:
        return None if exporter.calls <= good_calls else SpanExportResult.FAILURE

    exporter = Scripted(answer)
    parcels = [told.parcel(f"{number}-", [1] * row) for number, row in enumerate(rows)]
    sent(exporter, *parcels)
    arrived = [span for chunk in exporter.accepted for span in chunk]
    expected = []
    for number, row in enumerate(rows):
        count = sum(span.startswith(f"{number}-") for span in arrived)
        expected.append(f"{number}-: all" if count == row else f"{number}-: {count} of {row}, refused")
    assert sorted(told.lines) == sorted(expected)


def test_what_a_refused_parcel_puts_in_its_place_goes_out() -> None:
    told = Told()
    exporter = Scripted(lambda spans: SpanExportResult.FAILURE if "run0" in spans else None)
    sent(exporter, told.parcel("run", [1, 1], instead=told.parcel("verdict", [1])))
    assert exporter.accepted == [["verdict0"]]
    assert told.lines == ["run: 0 of 2, refused", "verdict: all"]


def test_a_refused_chunk_is_tried_again_a_few_times() -> None:
    exporter = Scripted(fails)
    sent(exporter, Told().parcel("run", [1]))
    assert exporter.calls == TRIES


def test_in_a_hurry_there_is_one_try() -> None:
    exporter = Scripted(fails)
    sender = Sender(exporter, 1 << 20)
    sender.hurry()
    sender.put(Told().parcel("run", [1]))
    sender.drain()
    assert exporter.calls == 1


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        pytest.param(PermissionError(), TRIES, id="what may be accepted in a moment is tried again"),
        pytest.param(ValueError(), 1, id="a span that cannot be written is not"),
        pytest.param(SystemExit(), TRIES, id="not even this ends the thread"),
    ],
)
def test_an_exporter_that_raises_costs_the_parcel_and_no_more(error: BaseException, calls: int) -> None:
    told, exporter = Told(), Scripted(raises(error))
    sent(exporter, told.parcel("run", [1]))
    assert told.lines == [f"run: 0 of 1, raised {type(error).__name__}"]
    assert exporter.calls == calls


def test_a_span_that_cannot_be_written_costs_those_beside_it_nothing() -> None:
    told = Told()

    def chokes(spans: Sequence[str]) -> None:
        if "bad1" in spans:
            raise TypeError

    exporter = Scripted(chokes)
    sent(exporter, told.parcel("good", [1, 1]), told.parcel("bad", [1, 1]), told.parcel("fine", [1]))
    assert sorted(told.lines) == ["bad: 0 of 2, raised TypeError", "fine: all", "good: all"]
    assert sorted(span for chunk in exporter.accepted for span in chunk) == ["fine0", "good0", "good1"]


def test_what_does_not_fit_the_backlog_is_refused_at_the_door_and_what_stands_for_it_still_fits() -> None:
    told, exporter = Told(), Scripted()
    big = told.parcel("big", [5000], instead=told.parcel("verdict", [10]))
    sent(exporter, told.parcel("first", [100]), big, max_bytes=2000 + 3 * SPAN_OVERHEAD)
    assert exporter.accepted == [["first0", "verdict0"]]
    assert told.lines == ["big: 0 of 1, backlog", "first: all", "verdict: all"]


def test_a_parcel_larger_than_the_backlog_leaves_when_nothing_else_waits() -> None:
    told, exporter = Told(), Scripted()
    sent(exporter, told.parcel("huge", [1 << 20]), max_bytes=1)
    assert told.lines == ["huge: all"]


def test_a_parcel_without_spans_is_delivered_at_once() -> None:
    told, exporter = Told(), Scripted()
    sent(exporter, told.parcel("empty", []))
    assert told.lines == ["empty: all"]
    assert exporter.calls == 0


@pytest.mark.parametrize(
    ("answer", "flushes", "expected"),
    [
        pytest.param(lambda _spans: None, True, True, id="all accepted"),
        pytest.param(lambda _spans: None, None, True, id="an exporter whose flush says nothing"),
        pytest.param(lambda _spans: None, False, False, id="an exporter that cannot flush"),
        pytest.param(fails, True, False, id="not all accepted"),
    ],
)
def test_a_flush_is_answered_when_all_before_it_was_dealt_with(
    answer: Answer,
    flushes: bool | None,  # noqa: FBT001  a column
    expected: bool,  # noqa: FBT001  a column
) -> None:
    told, exporter = Told(), Scripted(answer, flushes=flushes)
    sender = Sender(exporter, 1 << 20)
    first, second = Flush(deadline=0.0), Flush(deadline=0.0)
    sender.put(told.parcel("run", [1]))
    sender.put_flush(first)
    sender.put_flush(second)
    sender.drain()
    assert first.wait(0.0) is expected
    assert second.wait(0.0) is (flushes is not False)  # what went wrong is told once


# What is decided at one time leaves together


LONG_S, SOON_S = 60.0, 10.0


class Watched(threading.Event):
    """Tells when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.reached.set()
        return super().wait(timeout)


def lingering(monkeypatch: pytest.MonkeyPatch, linger_s: float) -> tuple[Scripted, Sender, threading.Thread]:
    """Return a sender at work that has taken one parcel and waits for more, with another one lined up."""
    monkeypatch.setattr("spangate._release.LINGER_S", linger_s)
    exporter, told = Scripted(), Told()
    sender = Sender(exporter, 1 << 40)
    sender._all_here = watched = Watched()
    thread = threading.Thread(target=sender.run, daemon=True)
    thread.start()
    sender.put(told.parcel("a", [1]))
    assert watched.reached.wait(SOON_S)
    sender.put(told.parcel("b", [1]))
    return exporter, sender, thread


def ended(sender: Sender, thread: threading.Thread) -> bool:
    sender.stop()
    thread.join(SOON_S)
    return not thread.is_alive()


def test_what_is_decided_at_one_time_shares_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, sender, thread = lingering(monkeypatch, LONG_S)
    sender.expect_no_more()
    assert ended(sender, thread)
    assert exporter.accepted == [["a0", "b0"]]


def test_it_is_waited_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, sender, thread = lingering(monkeypatch, 0.001)
    assert ended(sender, thread)
    assert [span for call in exporter.accepted for span in call] == ["a0", "b0"]


def test_in_a_hurry_it_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, sender, thread = lingering(monkeypatch, LONG_S)
    sender.hurry()
    assert ended(sender, thread)
    assert exporter.accepted == [["a0", "b0"]]


# While threads start, a flush may find itself at work beside the thread


@dataclass
class Held:
    """Answers an exporter's calls only once it is let go."""

    reached: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, _spans: Sequence[str]) -> None:
        self.reached.set()
        assert self.let_go.wait(SOON_S)


def at_work(held: Held) -> tuple[Scripted, Sender, threading.Thread]:
    """Return a sender whose thread is in the midst of a call."""
    exporter = Scripted(held)
    sender = Sender(exporter, 1 << 40)
    thread = threading.Thread(target=sender.run, daemon=True)
    thread.start()
    sender.put(Told().parcel("a", [1]))
    assert held.reached.wait(SOON_S)
    return exporter, sender, thread


def test_nobody_flushes_past_a_thread_that_has_something_in_hand() -> None:
    held = Held()
    exporter, sender, thread = at_work(held)
    flush = Flush(deadline=0.0)
    sender.put(Told().parcel("b", [1]))
    sender.put_flush(flush)
    sender.drain(0.01)
    assert (exporter.calls, flush.is_done) == (1, False)
    held.let_go.set()
    sender.drain(SOON_S)
    assert flush.wait(SOON_S)
    assert exporter.accepted == [["a0"], ["b0"]]
    assert ended(sender, thread)


def test_two_that_send_at_once_neither_wait_for_what_the_other_took_nor_answer_early() -> None:
    for _ in range(200):
        exporter, told = Scripted(), Told()
        sender = Sender(exporter, 1 << 40)
        thread = threading.Thread(target=sender.run, daemon=True)
        thread.start()
        for name in "abc":
            sender.put(told.parcel(name, [1]))
        flush = Flush(deadline=0.0)
        sender.put_flush(flush)
        sender.drain(SOON_S)
        assert flush.is_done
        assert told.lines == ["a: all", "b: all", "c: all"]
        assert ended(sender, thread)


def test_a_flush_that_meets_the_word_to_stop_leaves_it_to_the_thread() -> None:
    sender = Sender(Scripted(), 1 << 40)
    sender.stop()
    sender.drain(SOON_S)
    thread = threading.Thread(target=sender.run, daemon=True)
    thread.start()
    thread.join(SOON_S)
    assert not thread.is_alive()
